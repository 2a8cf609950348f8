"""A server that sends scripted bytes, drips, stalls, resets: whatever a test wants to see survived."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Callable
from types import TracebackType


class Peer:
    """One accepted connection, in the hands of a script."""

    def __init__(self, sock: socket.socket, server: RawServer) -> None:
        self._sock = sock
        self._server = server

    def read_request(self) -> bytes:
        """Return the head of the next request, b"" when the client closed; the server remembers it."""
        head = bytearray()
        while not head.endswith(b"\r\n\r\n"):
            received = self._sock.recv(1)
            if not received:
                return b""
            head += received
        self._server.requests.append(bytes(head))
        return bytes(head)

    def send(self, data: bytes) -> None:
        """Send ``data`` at once."""
        self._sock.sendall(data)

    def drip(self, data: bytes, every_seconds: float) -> None:
        """Send ``data`` byte by byte, until the client or the server has had enough."""
        for index in range(len(data)):
            if self._server.stopping.wait(every_seconds):
                return
            self._sock.sendall(data[index : index + 1])

    def flood(self, data: bytes, most_bytes: int) -> None:
        """Send ``data`` again and again, counting in ``server.sent_bytes``."""
        while self._server.sent_bytes < most_bytes:
            self._sock.sendall(data)
            self._server.sent_bytes += len(data)

    def hold(self) -> None:
        """Stay silent until the client closes or the test ends."""
        self._sock.settimeout(0.05)
        while not self._server.stopping.is_set():
            with contextlib.suppress(TimeoutError):
                if not self._sock.recv(4096):
                    return

    def reset(self) -> None:
        """End the connection with RST."""
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._sock.close()


Script = Callable[[Peer], None]


def answers(*replies: bytes, then_hold: bool = False) -> Script:
    """Return a script that answers each request with the next of ``replies``, then closes or stays silent."""

    def script(peer: Peer) -> None:
        for reply in replies:
            if not peer.read_request():
                return
            peer.send(reply)
        if then_hold:
            peer.hold()

    return script


class RawServer:
    """Listens on a loopback port; connection n runs script n, the last script runs for all further ones.

    ``connections`` counts accepted ones, ``requests`` holds the request heads that scripts read. With ``tls``
    every connection is wrapped first, and failed handshakes are only counted. ``closed`` is released once for
    each connection that this side has closed.
    """

    def __init__(
        self, *scripts: Script, tls: ssl.SSLContext | None = None, address: str = "127.0.0.1", port: int = 0
    ) -> None:
        self._scripts = scripts
        self._tls = tls
        self._threads: list[threading.Thread] = []
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(
            (address, port), family=socket.AF_INET6 if ":" in address else socket.AF_INET
        )
        self.port: int = self._listener.getsockname()[1]
        self.requests: list[bytes] = []
        self.connections = 0
        self.failed_handshakes = 0
        self.sent_bytes = 0
        self.closed = threading.Semaphore(0)
        self.stopping = threading.Event()

    def __enter__(self) -> RawServer:
        self._start(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stopping.set()
        for sock in (self._listener, *self._sockets):
            with contextlib.suppress(OSError):
                socket.socket.shutdown(sock, socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(10)

    def url(self, path: str = "/", host: str = "localhost", scheme: str = "http") -> str:
        """Return the URL of ``path`` on this server."""
        return f"{scheme}://{host}:{self.port}{path}"

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self.stopping.is_set():
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            script = self._scripts[min(self.connections, len(self._scripts) - 1)]
            self.connections += 1
            self._start(self._serve, sock, script)

    def _serve(self, sock: socket.socket, script: Script) -> None:
        self._sockets.append(sock)
        sock.settimeout(30)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            if self._tls is not None:
                try:
                    sock = self._tls.wrap_socket(sock, server_side=True)
                    self._sockets.append(sock)
                except (OSError, ValueError):
                    self.failed_handshakes += 1
                    return
            script(Peer(sock, self))
        except (OSError, ValueError):
            return
        finally:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_WR)
            sock.close()
            self.closed.release()
