"""Sockets to checked addresses: connecting, TLS, deadlines, and connections kept alive."""

from __future__ import annotations

import contextlib
import errno
import functools
import io
import select
import socket
import ssl
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

from requests.utils import DEFAULT_CA_BUNDLE_PATH

from connectors.fetchfault import FetchFault

STREAM_BUFFER_BYTES = 32 * 1024
_OUT_OF_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Target(NamedTuple):
    """Where one connection goes: the URL's scheme, host and port, and the checked address it stands for.

    Two fetches may share a connection only if their targets are equal.
    """

    scheme: str
    host: str
    port: int
    address: str
    address_port: int
    insecure: bool = False


class Deadline:
    """An instant on the monotonic clock that nothing in one fetch passes."""

    __slots__ = ("_at",)

    def __init__(self, seconds: float) -> None:
        self._at = time.monotonic() + seconds

    def left(self, most: float) -> float:
        """Return the seconds left, at most ``most``; TimeoutError when none are."""
        seconds = min(most, self._at - time.monotonic())
        if seconds <= 0:
            raise TimeoutError("the time for the whole fetch is over")
        return seconds

    def extend(self, seconds: float) -> None:
        """Move the instant by time that the fetch itself did not take."""
        self._at += seconds


@functools.lru_cache(maxsize=4)
def verified_context(ca_file: str | None = None) -> ssl.SSLContext:
    """Return the process's one TLS context that verifies chain and host name.

    Loading the bundle costs about 30 ms of CPU, so it is done once per ``ca_file`` (default: the bundle that
    comes with requests), not once per connection.
    """
    context = ssl.create_default_context(cafile=ca_file or DEFAULT_CA_BUNDLE_PATH)
    context.set_alpn_protocols(["http/1.1"])
    return context


@functools.lru_cache(maxsize=1)
def unverified_context() -> ssl.SSLContext:
    """Return the process's one TLS context that verifies nothing: for hosts whose policy says so."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["http/1.1"])
    return context


class _TimedReader(io.RawIOBase):
    """Bytes of a socket; every read waits at most the read timeout and never past the deadline."""

    def __init__(self, sock: socket.socket, deadline: Deadline, read_timeout_seconds: float) -> None:
        self._sock = sock
        self._deadline = deadline
        self._read_timeout_seconds = read_timeout_seconds
        self.ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self.ended:
            return 0
        self._sock.settimeout(self._deadline.left(self._read_timeout_seconds))
        return self._sock.recv_into(buffer)


class Connection:
    """One open connection to a target, used by one thread at a time."""

    def __init__(self, target: Target, sock: socket.socket) -> None:
        self.target = target
        self._sock = sock
        self._reader: _TimedReader | None = None
        self._stream: io.BufferedReader | None = None

    def ask(self, request: bytes, deadline: Deadline, read_timeout_seconds: float) -> io.BufferedReader:
        """Send one request and return the stream its reply comes from.

        A broken pipe while sending is no error yet: a server may answer early and close (RFC 9112 section
        9.5).
        """
        self._sock.settimeout(deadline.left(read_timeout_seconds))
        with contextlib.suppress(BrokenPipeError):
            self._sock.sendall(request)
        self._reader = _TimedReader(self._sock, deadline, read_timeout_seconds)
        self._stream = io.BufferedReader(self._reader, STREAM_BUFFER_BYTES)
        return self._stream

    def ended_clean(self) -> bool:
        """Return whether nothing came after the last reply: only then may another request follow."""
        if self._reader is None or self._stream is None:
            return False
        self._reader.ended = True
        surplus = self._stream.peek(1)
        self._reader = self._stream = None
        return not surplus and self.is_quiet()

    def is_quiet(self) -> bool:
        """Return whether the idle connection is open with no byte waiting in it."""
        if isinstance(self._sock, ssl.SSLSocket) and self._sock.pending():
            return False
        poll = select.poll()
        try:
            poll.register(self._sock, select.POLLIN | select.POLLPRI)
            return not poll.poll(0)
        except (OSError, ValueError):
            return False

    def cut(self) -> None:
        """End the connection from another thread; whoever reads from it sees the end of the stream."""
        # Not SSLSocket.shutdown: it drops the TLS layer, and its reader would get bytes still encrypted.
        with contextlib.suppress(OSError, ValueError):
            socket.socket.shutdown(self._sock, socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the socket; never fails."""
        with contextlib.suppress(OSError):
            self._sock.close()


def open_connection(
    target: Target, deadline: Deadline, timeout_seconds: float, ca: ssl.SSLContext
) -> Connection:
    """Return a connection to exactly ``target.address``, for https with a finished TLS handshake.

    The certificate is checked against the URL's host, never against the address. FetchFault reasons:
    connect_timeout, connection_refused, connection_reset, unreachable, tls_error, local_error.
    """
    attempt = Deadline(deadline.left(timeout_seconds))
    family = socket.AF_INET6 if ":" in target.address else socket.AF_INET
    sock: socket.socket | None = None
    try:
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.settimeout(attempt.left(timeout_seconds))
        sock.connect((target.address, target.address_port))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if target.scheme == "https":
            sock.settimeout(attempt.left(timeout_seconds))
            context = unverified_context() if target.insecure else ca
            sock = context.wrap_socket(sock, server_hostname=target.host.rstrip("."))
        return Connection(target, sock)
    except (OSError, ValueError) as error:
        if sock is not None:
            sock.close()
        raise _connect_fault(error, target.address) from error


def _connect_fault(error: OSError | ValueError, ip: str) -> FetchFault:
    if isinstance(error, TimeoutError):
        return FetchFault("connect_timeout", f"connect: {error}", ip)
    # A host name that the TLS library cannot encode raises ValueError (UnicodeError is one).
    if isinstance(error, ssl.SSLError | ssl.CertificateError | ValueError):
        return FetchFault("tls_error", error, ip)
    if isinstance(error, ConnectionRefusedError):
        return FetchFault("connection_refused", error, ip)
    if isinstance(error, ConnectionError):
        return FetchFault("connection_reset", error, ip)
    if error.errno in _OUT_OF_DESCRIPTORS:
        return FetchFault("local_error", error, ip)
    return FetchFault("unreachable", error, ip)


class KeptConnections:
    """Idle connections, at most one per target and ``most`` in all; the longest unused goes first.

    Safe for any number of threads. ``clock`` gives monotonic seconds.
    """

    def __init__(self, most: int = 256, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._lock = threading.Lock()
        self._idle: OrderedDict[Target, tuple[Connection, float]] = OrderedDict()

    def holds(self, target: Target) -> bool:
        """Return whether a connection to ``target`` is kept; it may be dead by now."""
        with self._lock:
            return target in self._idle

    def take(self, target: Target) -> Connection | None:
        """Return an open, quiet connection to ``target`` that is still within its idle time, else None."""
        with self._lock:
            kept = self._idle.pop(target, None)
        if kept is None:
            return None
        connection, until = kept
        if self._clock() < until and connection.is_quiet():
            return connection
        connection.close()
        return None

    def keep(self, connection: Connection, idle_seconds: float) -> None:
        """Keep ``connection`` for at most ``idle_seconds``."""
        dropped: list[tuple[Connection, float]] = []
        with self._lock:
            if connection.target in self._idle:
                dropped.append(self._idle.pop(connection.target))
            self._idle[connection.target] = (connection, self._clock() + idle_seconds)
            while len(self._idle) > self._most:
                dropped.append(self._idle.popitem(last=False)[1])
        for old, _ in dropped:
            old.close()

    def close_host(self, host: str) -> None:
        """Close what is idle for this host name, on every port and scheme."""
        self._close(lambda target: target.host == host)

    def close(self) -> None:
        """Close everything that is idle."""
        self._close(lambda target: True)

    def _close(self, chosen: Callable[[Target], bool]) -> None:
        with self._lock:
            targets = [target for target in self._idle if chosen(target)]
            connections = [self._idle.pop(target)[0] for target in targets]
        for connection in connections:
            connection.close()
