"""The transport adapter under the requests session: one exchange on a connection to a checked address."""

from __future__ import annotations

import contextlib
import io
import re
import ssl
import threading
from collections.abc import Callable, Iterator
from typing import Any

import requests
from requests.adapters import BaseAdapter
from requests.structures import CaseInsensitiveDict

from connectors.body import Body, framing_of, read_body
from connectors.fetchfault import FetchFault
from connectors.limits import FetchLimits
from connectors.pacer import AddressBusy
from connectors.reply import ReplyHead, read_head
from connectors.transport import (
    Connection,
    Deadline,
    KeptConnections,
    Target,
    open_connection,
    verified_context,
)
from schemas.fetch import Truncation

MOST_ADDRESSES_TRIED = 2
IDLE_SECONDS = 60.0
_NOBODY_THERE = ("connection_refused", "connect_timeout", "unreachable")
_KEEP_ALIVE_TIMEOUT = re.compile(r"\btimeout\s*=\s*\"?([0-9]{1,6})", re.IGNORECASE)


class PinnedRequest(requests.PreparedRequest):
    """A prepared request that knows its checked targets, its deadline, and its request line as sent.

    ``take_turn`` is called with an address before anything goes to it, and may raise AddressBusy; ``sending``
    just before the request goes out.
    """

    routes: tuple[Target, ...]
    deadline: Deadline
    request_line: str
    take_turn: Callable[[str], None]
    sending: Callable[[str], None]

    def wire_bytes(self) -> bytes:
        """Return the head of the request exactly as it goes out."""
        lines = [self.request_line, *(f"{name}: {value}" for name, value in self.headers.items())]
        return "\r\n".join([*lines, "", ""]).encode("latin-1")


class Exchange:
    """A reply whose head was read: ``head``, ``ip``, and the body still on the wire.

    What ``requests.Response.raw`` holds. ``close`` keeps the connection if the reply ended clean.
    """

    def __init__(
        self, adapter: WireAdapter, connection: Connection, stream: io.BufferedReader, head: ReplyHead
    ) -> None:
        self.head = head
        self.ip = connection.target.address
        self._adapter = adapter
        self._connection = connection
        self._stream = stream
        self._framing = framing_of(head)
        self._whole = False

    def read_body(self, max_bytes: int) -> Body:
        """Return the body as ``connectors.body.read_body`` gives it."""
        body = read_body(self._stream, self._framing, max_bytes)
        self._whole = body.truncated is None
        if body.truncated == Truncation.DISCONNECT and self._adapter.stopped:
            return body._replace(truncated=Truncation.TIME, detail="stopped")
        return body

    def close(self) -> None:
        """Give the connection back, or close it when it cannot carry another request."""
        reusable = self._whole and self._framing.reusable
        self._adapter.give_back(self._connection, _idle_seconds(self.head) if reusable else 0.0)


class WireAdapter(BaseAdapter):
    """Sends PinnedRequests. Thread-safe; one idle connection is kept for each target."""

    def __init__(self, limits: FetchLimits, ca_file: str | None = None) -> None:
        super().__init__()
        self._limits = limits
        self._ca_file = ca_file
        self._kept = KeptConnections()
        self._lock = threading.Lock()
        self._busy: set[Connection] = set()
        self.stopped = False

    def send(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> requests.Response:
        """Return the response of a PinnedRequest with the body unread in ``raw`` (an Exchange).

        FetchFault for whatever goes wrong, AddressBusy when it is not the address's turn. requests' own options
        (time-outs, verify, proxies) are not looked at: the request carries its limits and targets.
        """
        assert isinstance(request, PinnedRequest)
        exchange = self._exchange(request)
        response = requests.Response()
        response.status_code = exchange.head.status
        response.reason = exchange.head.reason_phrase
        response.headers = CaseInsensitiveDict(exchange.head.headers)
        response.url = request.url or ""
        response.request = request
        response.raw = exchange
        return response

    def _exchange(self, request: PinnedRequest) -> Exchange:
        connection = self._connect(request)
        with self._lock:
            self._busy.add(connection)
            stopped = self.stopped
        try:
            if stopped:
                raise FetchFault("stopped", "no more fetches")
            with _naming_faults():
                read_timeout_seconds = self._limits.read_timeout_seconds
                request.sending(connection.target.address)
                stream = connection.ask(request.wire_bytes(), request.deadline, read_timeout_seconds)
                head = read_head(stream, self._limits)
            return Exchange(self, connection, stream, head)
        except FetchFault as fault:
            self.give_back(connection, 0.0)
            reason = "stopped" if self.stopped else fault.reason
            raise FetchFault(reason, fault.detail, connection.target.address) from fault

    def _connect(self, request: PinnedRequest) -> Connection:
        kept = [target for target in request.routes if self._kept.holds(target)]
        targets = list(dict.fromkeys([*kept, *request.routes]))[:MOST_ADDRESSES_TRIED]
        seconds = self._limits.connect_timeout_seconds / len(targets)
        faults: list[FetchFault] = []
        for target in targets:
            try:
                request.take_turn(target.address)
                return self._kept.take(target) or self._open(target, request.deadline, seconds)
            except AddressBusy:
                if not faults:
                    raise
            except FetchFault as fault:
                faults.append(fault)
                if fault.reason not in _NOBODY_THERE:
                    break
        raise faults[0]

    def _open(self, target: Target, deadline: Deadline, seconds: float) -> Connection:
        if self.stopped:
            raise FetchFault("stopped", "no more fetches", target.address)
        try:
            return open_connection(target, deadline, seconds, verified_context(self._ca_file))
        except TimeoutError as error:
            raise FetchFault("timeout", error, target.address) from error

    def give_back(self, connection: Connection, idle_seconds: float) -> None:
        """Keep a connection for its host, or close it: without idle time, or with bytes waiting in it."""
        with self._lock:
            self._busy.discard(connection)
        if idle_seconds > 0 and not self.stopped and connection.ended_clean():
            self._kept.keep(connection, idle_seconds)
        else:
            connection.close()

    def cut(self) -> None:
        """End all exchanges in hand and refuse new ones."""
        with self._lock:
            self.stopped = True
            busy = list(self._busy)
        for connection in busy:
            connection.cut()

    def close_host(self, host: str) -> None:
        """Close the idle connections of one host."""
        self._kept.close_host(host)

    def close(self) -> None:
        """Close all idle connections."""
        self._kept.close()


@contextlib.contextmanager
def _naming_faults() -> Iterator[None]:
    """Turn what a socket raises between the request and the end of the head into the fault it means."""
    try:
        yield
    except TimeoutError as error:
        raise FetchFault("timeout", error) from error
    except ssl.SSLError as error:
        raise FetchFault("tls_error", error) from error
    except OSError as error:
        raise FetchFault("connection_reset", error) from error


def _idle_seconds(head: ReplyHead) -> float:
    """Return how long the server keeps an idle connection: a second less than it says, at most a minute."""
    match = _KEEP_ALIVE_TIMEOUT.search(",".join(head.values("keep-alive")))
    return min(IDLE_SECONDS, float(match[1]) - 1.0) if match else IDLE_SECONDS
