"""A proxy on loopback that breaks every n-th request to the server behind it."""

from __future__ import annotations

import contextlib
import http.client
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

OWN = frozenset({"expect", "transfer-encoding", "content-length", "connection"})


class FaultyProxy(ThreadingHTTPServer):
    """Forwards requests; breaks every ``every``-th, in turn before and after the server has acted on it.

    ``faults`` counts the broken ones. With ``every`` 1 nothing gets through.
    """

    daemon_threads = True

    def __init__(self, target: str, every: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.target = urlsplit(target).netloc
        self.every = every
        self.requests = 0
        self.faults = 0
        self.counting = threading.Lock()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def fault(self) -> str | None:
        """Return what happens to the next request: nothing, "before" or "after"."""
        with self.counting:
            self.requests += 1
            if self.requests % self.every:
                return None
            self.faults += 1
            return "before" if self.faults % 2 else "after"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16
    server: FaultyProxy

    def handle_expect_100(self) -> bool:
        """Ask for the body at once; the answer is otherwise sent in one piece."""
        going_on = super().handle_expect_100()
        self.wfile.flush()
        return going_on

    def _forward(self) -> None:
        body = self._body()
        fault = self.server.fault()
        if fault == "before":
            self._answer(503, [], b"try again")
            return
        backend = http.client.HTTPConnection(self.server.target, timeout=60)
        try:
            headers = {
                k: v for k, v in self.headers.items() if k.lower() not in ("expect", "transfer-encoding")
            }
            headers["Content-Length"] = str(len(body))
            backend.request(self.command, self.path, body, headers)
            answer = backend.getresponse()
            data = answer.read()
        finally:
            backend.close()
        if fault == "after":
            self.close_connection = True
            self.connection.close()
            return
        self._answer(answer.status, answer.getheaders(), data)

    def _body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            parts = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _answer(self, status: int, headers: list[tuple[str, str]], data: bytes) -> None:
        self.send_response(status)
        names = {name.lower() for name, _ in headers}
        for name, value in headers:
            if name.lower() not in ("transfer-encoding", "connection", "date", "server"):
                self.send_header(name, value)
        if "content-length" not in names and status not in (204, 304):
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do_PATCH = _forward

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def faulty_proxy(target: str, every: int) -> Iterator[FaultyProxy]:
    """Serve a FaultyProxy in front of ``target`` (http://host:port) for the block."""
    proxy = FaultyProxy(target, every)
    thread = threading.Thread(target=proxy.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.shutdown()
        proxy.server_close()
        thread.join()
