"""One polite GET over HTTP/1.1: what a server sent, within limits, or the reason why there is nothing."""

from __future__ import annotations

import re
import threading
from typing import Protocol, cast
from urllib.parse import urlsplit

import requests
from requests.structures import CaseInsensitiveDict

from connectors import encoding
from connectors.adapter import Exchange, PinnedRequest, WireAdapter
from connectors.body import Body
from connectors.clock import Clock, SystemClock
from connectors.connect_to import ConnectTo
from connectors.dns import Resolver
from connectors.fetchfault import FetchFault
from connectors.limits import FetchLimits
from connectors.pacer import AddressBusy, AddressPacer, Postponed
from connectors.routes import AddressPolicy, Routes
from connectors.transport import Deadline, Target
from schemas.fetch import Capture, FetchFailure, FetchRequest, Truncation

ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,text/plain;q=0.8,*/*;q=0.5"
_DEFAULT_PORTS = {"http": 80, "https": 443}
# Decoding to count is CPU work with windows of up to 16 MB: a few at a time bound the memory of many threads.
_DECODING_SLOTS = 4
_FIELD_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_VISIBLE_ASCII = re.compile(r"[\x21-\x7e]+")


class Fetcher(Protocol):
    """What the fetch step needs of the network."""

    def fetch(self, request: FetchRequest) -> Capture | FetchFailure | Postponed:
        """Return what came back for one GET, or Postponed when its address must not be asked yet.

        Never raises for anything a server or the network does.
        """

    def close_host(self, host: str) -> None:
        """Close the idle connections of a host that is done."""

    def close(self) -> None:
        """Close all idle connections."""


class _NoRedirects(requests.Session):
    """A session that never looks at Location: requests would read a redirect's whole body to do so."""

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        return None


class HttpFetcher:
    """Fetches with requests over connections that go to checked addresses only.

    Sends User-Agent ``NAME/VERSION (+CONTACT)``, validators and cookies of the request, and nothing else of
    the crawl: no Referer, no stored cookies, no proxy or credentials from the environment. Redirects are
    returned, not followed. Connections are kept alive for each host until ``close_host``. Nothing is sent
    twice. ``pacer`` keeps requests to one address apart, from the first on; by default nothing does.

    Safe for any number of threads, each with another host. ``clock`` only stamps; limits are kept on the
    system's monotonic clock, as sockets are.
    """

    def __init__(
        self,
        user_agent: str,
        contact: str | None,
        resolver: Resolver,
        policy: AddressPolicy,
        limits: FetchLimits | None = None,
        connect_to: ConnectTo | None = None,
        clock: Clock | None = None,
        ca_file: str | None = None,
        pacer: AddressPacer | None = None,
    ) -> None:
        self._user_agent = _header_value(f"{user_agent} (+{contact})" if contact else user_agent)
        self._limits = limits or FetchLimits()
        self._clock = clock or SystemClock()
        self._routes = Routes(resolver, connect_to or ConnectTo(), policy, bool(contact))
        self._pacer = pacer or AddressPacer(0.0, self._clock)
        self._adapter = WireAdapter(self._limits, ca_file)
        self._decoding = threading.BoundedSemaphore(_DECODING_SLOTS)
        self._session = _NoRedirects()
        self._session.trust_env = False
        self._session.mount("http://", self._adapter)
        self._session.mount("https://", self._adapter)

    def fetch(self, request: FetchRequest) -> Capture | FetchFailure | Postponed:
        """Return the capture of one GET, or the failure with its reason, or Postponed: nothing was sent.

        A body cut short is a capture with ``truncated`` set; a 2xx without a single byte of it is a failure.
        Reasons: timeout, connect_timeout, connection_refused, connection_reset, unreachable, dns_failure,
        tls_error, private_address, no_contact, port_not_allowed, bad_url, bad_response,
        header_too_large, disconnect, local_error, stopped. ``started_at`` is when the address was turned to:
        neither the look-up of the name nor the wait for the address's turn counts as the host's latency.
        """
        turn = _Turn(self._pacer, self._clock, Deadline(self._limits.fetch_timeout_seconds))
        try:
            return self._capture(request, turn)
        except AddressBusy as busy:
            return Postponed(request.url, busy.address, busy.seconds)
        except TimeoutError as error:
            return FetchFailure(request.url, "timeout", str(error), turn.started_at, self._clock.now())
        except FetchFault as fault:
            finished_at = self._clock.now()
            return FetchFailure(
                request.url, fault.reason, fault.detail, turn.started_at, finished_at, fault.ip
            )

    def _capture(self, request: FetchRequest, turn: _Turn) -> Capture:
        prepared = self._prepare(request, turn)
        response = self._session.send(prepared, stream=True, allow_redirects=False, proxies={})
        exchange = cast(Exchange, response.raw)
        try:
            body = self._body(exchange, request)
        finally:
            exchange.close()
        head = exchange.head
        return Capture(
            url=request.url,
            started_at=turn.started_at,
            finished_at=self._clock.now(),
            ip=exchange.ip,
            request_line=prepared.request_line,
            request_headers=tuple(prepared.headers.items()),
            protocol=head.protocol,
            status=head.status,
            reason_phrase=head.reason_phrase,
            response_headers=head.headers,
            body=body.data,
            truncated=body.truncated,
        )

    def _prepare(self, request: FetchRequest, turn: _Turn) -> PinnedRequest:
        wanted, target_path = _split(request)
        prepared = PinnedRequest()
        prepared.method = "GET"
        prepared.url = request.url
        prepared.headers = CaseInsensitiveDict(_headers(request, wanted, self._user_agent))
        prepared.body = None
        prepared.hooks = {"response": []}
        prepared.request_line = f"GET {target_path} HTTP/1.1"
        prepared.deadline = turn.deadline
        prepared.take_turn, prepared.sending = turn.take, self._pacer.sending
        prepared.routes = self._routes.find(wanted, turn.deadline)
        return prepared

    def _body(self, exchange: Exchange, request: FetchRequest) -> Body:
        max_bytes = request.max_body_bytes or self._limits.max_body_bytes
        try:
            body = exchange.read_body(max_bytes)
        except FetchFault as fault:
            raise FetchFault(fault.reason, fault.detail, exchange.ip) from fault
        # A redirect or an error is known by its head alone; a page without one byte of it is not.
        if body.truncated and not body.data and 200 <= exchange.head.status < 300:
            reason = "timeout" if body.truncated == Truncation.TIME else "disconnect"
            raise FetchFault(reason, body.detail, exchange.ip)
        return self._within_decoded_cap(body, exchange, max_bytes)

    def _within_decoded_cap(self, body: Body, exchange: Exchange, max_bytes: int) -> Body:
        content_encoding = ",".join(exchange.head.values("content-encoding"))
        if not encoding.codings_of(content_encoding):
            return body
        with self._decoding:
            kept = encoding.bytes_before_overflow(
                body.data, content_encoding, self._limits.max_decoded_bytes or max_bytes
            )
        if kept is None:
            return body
        return Body(body.data[:kept], Truncation.LENGTH)

    def close_host(self, host: str) -> None:
        """Close the idle connections of this host name."""
        self._adapter.close_host(host)

    @property
    def stopped(self) -> bool:
        """Whether ``cut`` has been called."""
        return self._adapter.stopped

    def cut(self) -> None:
        """End every fetch in hand now, and every later one at once.

        A fetch that has part of a body returns it with ``truncated`` time, any other fails as ``stopped``.
        """
        self._adapter.cut()

    def close(self) -> None:
        """Close all idle connections."""
        self._session.close()


class _Turn:
    """When one fetch began to concern an address."""

    def __init__(self, pacer: AddressPacer, clock: Clock, deadline: Deadline) -> None:
        self.deadline = deadline
        self.started_at = clock.now()
        self._pacer, self._clock = pacer, clock
        self._taken = False

    def take(self, address: str) -> None:
        """Wait for the address's turn, off the fetch's own time; AddressBusy when that is too far off."""
        waited = self._pacer.take(address)
        if waited is None:
            raise AddressBusy(address, self._pacer.seconds_left(address))
        self.deadline.extend(waited)
        if not self._taken:
            self._taken = True
            self.started_at = self._clock.now()


def _split(request: FetchRequest) -> tuple[Target, str]:
    """Return the target still without an address, and the request target (RFC 9112 section 3.2.1)."""
    try:
        parts = urlsplit(request.url)
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError as error:
        raise FetchFault("bad_url", error) from error
    if parts.scheme not in _DEFAULT_PORTS or not host or not _VISIBLE_ASCII.fullmatch(request.url):
        raise FetchFault("bad_url", "not an absolute http or https URL in normal form")
    port = port or _DEFAULT_PORTS[parts.scheme]
    # Cut, not put together again: an empty query is part of what is asked for.
    after_authority = request.url.partition("://")[2][len(parts.netloc) :].partition("#")[0]
    path = after_authority if after_authority.startswith("/") else f"/{after_authority}"
    return Target(parts.scheme, host, port, "", port, request.insecure_tls), path


def _headers(request: FetchRequest, wanted: Target, user_agent: str) -> list[tuple[str, str]]:
    host = f"[{wanted.host}]" if ":" in wanted.host else wanted.host
    if wanted.port != _DEFAULT_PORTS[wanted.scheme]:
        host = f"{host}:{wanted.port}"
    headers = [
        ("Host", host),
        ("User-Agent", user_agent),
        ("Accept", ACCEPT),
        ("Accept-Encoding", encoding.ACCEPTED),
        ("If-None-Match", _header_value(request.etag)),
        ("If-Modified-Since", _header_value(request.last_modified)),
        ("Cookie", "; ".join(filter(None, (_header_value("=".join(pair)) for pair in request.cookies)))),
        ("Connection", "keep-alive"),
    ]
    return [(name, value) for name, value in headers if value]


def _header_value(text: str | None) -> str:
    """Return ``text`` when it can stand in one header field, else the empty string (then it is not sent)."""
    value = (text or "").strip()
    return value if _FIELD_VALUE.fullmatch(value) else ""
