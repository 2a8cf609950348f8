"""A proxy on loopback that counts the requests to the server behind it, and breaks, delays or holds some."""

from __future__ import annotations

import contextlib
import http.client
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

OWN = frozenset({"expect", "transfer-encoding", "content-length", "connection"})


SLOW_SECONDS = 0.5


class Seen(NamedTuple):
    """One request. ``about`` is its path and the beginning of its body, where some stores name the object."""

    method: str
    about: str
    copies: bool


class Hold:
    """Stops the first request that ``matches``: ``held`` tells that it came; it gets no answer."""

    def __init__(self, method: str, text: str, *, copies: bool = False) -> None:
        self.method, self.text, self.copies = method, text, copies
        self.held = threading.Event()

    def matches(self, seen: Seen) -> bool:
        """Return whether this is the request to stop."""
        same_method = seen.method in self.method.split("|")
        return same_method and self.text in seen.about and seen.copies == self.copies


class FaultyProxy(ThreadingHTTPServer):
    """Forwards requests and keeps what it saw in ``log``.

    Every ``every``-th (0: none) is broken, by the ``kinds`` in turn: "before" answers 503 instead of the server,
    "after" cuts the connection when the server has acted, "slow" answers late. ``faults`` counts them. With
    ``every`` 1 and no "slow" nothing gets through. ``hold`` stops one request for good.
    """

    daemon_threads = True

    def __init__(self, target: str, every: int, kinds: Sequence[str] = ("before", "after")) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.target = urlsplit(target).netloc
        self.every = every
        self.kinds = kinds
        self.hold: Hold | None = None
        self.log: list[Seen] = []
        self.requests = 0
        self.faults = 0
        self.counting = threading.Lock()
        self.ended = threading.Event()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: a client that is killed breaks its connection."""

    def fault(self) -> str | None:
        """Return what happens to the next request: nothing, or one of the kinds."""
        with self.counting:
            self.requests += 1
            if not self.every or self.requests % self.every:
                return None
            self.faults += 1
            return self.kinds[(self.faults - 1) % len(self.kinds)]

    def stops(self, seen: Seen) -> bool:
        """Note a request; return whether it is the one to hold."""
        hold = self.hold
        with self.counting:
            self.log.append(seen)
        if hold is None or not hold.matches(seen):
            return False
        hold.held.set()
        return True


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
        about = f"{unquote(self.path)} {body[:300].decode('utf-8', 'replace')}"
        copies = "rewriteTo" in self.path or "x-amz-copy-source" in self.headers
        if self.server.stops(Seen(self.command, about, copies)):
            self.server.ended.wait()
            self.close_connection = True
            return
        fault = self.server.fault()
        if fault == "before":
            self._answer(503, [], b"try again")
            return
        if fault == "slow":
            self.server.ended.wait(SLOW_SECONDS)
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
def faulty_proxy(
    target: str, every: int, kinds: Sequence[str] = ("before", "after")
) -> Iterator[FaultyProxy]:
    """Serve a FaultyProxy in front of ``target`` (http://host:port) for the block."""
    proxy = FaultyProxy(target, every, kinds)
    thread = threading.Thread(target=proxy.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.ended.set()
        proxy.shutdown()
        proxy.server_close()
        thread.join()
