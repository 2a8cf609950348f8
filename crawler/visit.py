"""The nouns of a shard's fetching: what may be done next, what is asked, and what came back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from crawler.politeness import PolitenessPolicy
from crawler.robots import MAX_BODY_BYTES
from schemas.fetch import Capture, FetchFailure, FetchRequest, OutcomeRow
from schemas.flags import CrawlFlags
from schemas.state import UrlState

PLANNED, HOP, ROBOTS = "planned", "hop", "robots"

MAX_FIELD_CHARS = 1024
"""A header field that is longer is not remembered: what is kept of a URL is kept for ever."""

MAX_ROBOTS_TAG_CHARS = 16_384
MAX_COOKIES_CHARS = 8_192


@dataclass(frozen=True, slots=True)
class FetchPolicy:
    """How one shard is fetched. A bad value raises ValueError with the value and the remedy.

    ``concurrency`` is how many requests may be in hand at once. ``exempt_addresses`` need no gap between
    the hosts that share them (targets of --connect_to).
    """

    politeness: PolitenessPolicy = field(default_factory=PolitenessPolicy)
    user_agent: str = "roundcrawl/0.1"
    max_redirects: int = 5
    max_retries: int = 5
    robots_ttl_hours: float = 24.0
    max_body_bytes: int = 5_242_880
    concurrency: int = 128
    exempt_addresses: frozenset[str] = frozenset()
    latency_guess_seconds: float = 0.5

    def __post_init__(self) -> None:
        for name in ("max_redirects", "max_retries", "robots_ttl_hours"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must be 0 or more, got {getattr(self, name)}")
        for name in ("max_body_bytes", "concurrency"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be 1 or more, got {getattr(self, name)}")
        if not self.latency_guess_seconds > 0:
            raise ValueError(f"latency_guess_seconds must be above 0, got {self.latency_guess_seconds}")

    @staticmethod
    def from_flags(flags: CrawlFlags, exempt_addresses: frozenset[str] = frozenset()) -> FetchPolicy:
        """Return the policy that a round's flags ask for."""
        politeness = PolitenessPolicy(
            min_delay_seconds=flags.min_delay_seconds,
            latency_factor=flags.latency_factor,
            max_delay_seconds=flags.max_delay_seconds,
            max_crawl_delay_seconds=flags.max_crawl_delay_seconds,
            min_ip_delay_seconds=flags.min_ip_delay_seconds,
        )
        return FetchPolicy(
            politeness=politeness,
            user_agent=flags.user_agent,
            max_redirects=flags.max_redirects,
            max_retries=flags.max_retries,
            robots_ttl_hours=flags.robots_ttl_hours,
            max_body_bytes=flags.max_body_bytes,
            concurrency=flags.fetch_concurrency,
            exempt_addresses=exempt_addresses,
        )


class Visit(NamedTuple):
    """One URL that waits in its host's queue: of the plan, a redirect's target, or a robots.txt.

    ``state`` is the planned URL it belongs to, None for robots.txt. ``chain`` holds the URLs that led here,
    first first. ``authority`` is whose robots.txt is wanted. ``cookies`` are (host, name, value).
    """

    kind: str
    url: str
    host: str
    state: UrlState | None = None
    chain: tuple[str, ...] = ()
    authority: str = ""
    cookies: tuple[tuple[str, str, str], ...] = ()

    @property
    def via(self) -> str | None:
        """The redirect or page that led here, None for a seed and a robots.txt."""
        if self.chain:
            return self.chain[-1]
        return self.state.discovered_from if self.state is not None else None


class Flight(NamedTuple):
    """A request in hand; ``owed_seconds`` is the pause its host was given before it."""

    visit: Visit
    request: FetchRequest
    owed_seconds: float


class Ask(NamedTuple):
    """Send this request now and report with ``ShardSession.finish(ticket, ...)``.

    Until then the host is the caller's. ``kind`` is planned, hop or robots. ``untold_delay_seconds`` is a
    Crawl-delay of the host that is written down nowhere yet: note it durably before sending. ``via`` is the
    page or redirect that led to the URL, None for seeds and robots.txt.
    """

    ticket: int
    request: FetchRequest
    kind: str
    host: str
    untold_delay_seconds: float | None = None
    via: str | None = None


class Wait(NamedTuple):
    """Nothing may be asked before ``until`` (epoch seconds); None: not before a request in hand ends.

    A request that ends earlier may change it: ask again after every ``finish``.
    """

    until: float | None


class Settled(NamedTuple):
    """Rows that became final without a request. Record them and ask for the next action."""

    rows: list[OutcomeRow]


class Finished(NamedTuple):
    """Nothing waits and nothing is in hand: every planned URL has its row, unless the session was stopped."""


class Progress(NamedTuple):
    """How far a session is: planned URLs with a row, planned URLs, hosts that wait, requests in hand."""

    done: int
    planned: int
    hosts_waiting: int
    in_hand: int


Action: TypeAlias = Ask | Wait | Settled | Finished


def request_for(visit: Visit, policy: FetchPolicy, insecure_tls: bool) -> FetchRequest:
    """Return the request of a visit: conditional if the planned URL's last body is the one it keeps.

    Cookies go back only to the host that set them, within the redirect chain that got them.
    """
    state = visit.state if visit.kind == PLANNED else None
    again = state if state is not None and state.duplicate_of is None else None
    return FetchRequest(
        visit.url,
        etag=again.etag if again else None,
        last_modified=again.last_modified if again else None,
        # One byte more than is read of a robots.txt tells a file that fits from one that was cut.
        max_body_bytes=MAX_BODY_BYTES + 1 if visit.kind == ROBOTS else policy.max_body_bytes,
        insecure_tls=insecure_tls,
        cookies=_fitting((name, value) for host, name, value in visit.cookies if host == visit.host),
    )


def _fitting(cookies: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Return the cookies, first first, that a server can be expected to read."""
    kept, room = [], MAX_COOKIES_CHARS
    for name, value in cookies:
        room -= len(name) + len(value)
        if room >= 0:
            kept.append((name, value))
    return tuple(kept)


class Reply(NamedTuple):
    """What a session needs to know of one request's end. Instants are UTC epoch seconds.

    Either ``status`` or ``failure`` (a reason word of the contract) is set. ``body`` is wanted for
    robots.txt only, content coding undone.
    """

    started_at: float
    finished_at: float
    status: int | None = None
    failure: str | None = None
    detail: str | None = None
    ip: str | None = None
    location: str | None = None
    retry_after: str | None = None
    cookies: tuple[tuple[str, str], ...] = ()
    truncated: str | None = None
    etag: str | None = None
    last_modified: str | None = None
    content_type: str | None = None
    content_encoding: str | None = None
    robots_tag: str | None = None
    body: bytes = b""


def reply_of(answer: Capture | FetchFailure, body: bytes = b"") -> Reply:
    """Return the reply that a capture or a failure amounts to; ``body`` as Reply wants it."""
    if isinstance(answer, FetchFailure):
        return Reply(
            answer.started_at, answer.finished_at, failure=answer.reason, detail=answer.detail, ip=answer.ip
        )
    values: dict[str, list[str]] = {}
    for name, value in answer.response_headers:
        values.setdefault(name.lower(), []).append(value.strip())

    def first(name: str) -> str | None:
        return values[name][0] if name in values else None

    def short(name: str, joined_by: str | None = None) -> str | None:
        value = first(name) if joined_by is None or name not in values else joined_by.join(values[name])
        return value if value is None or len(value) <= MAX_FIELD_CHARS else None

    robots_tag = "\n".join(values.get("x-robots-tag", ()))[:MAX_ROBOTS_TAG_CHARS]

    return Reply(
        started_at=answer.started_at,
        finished_at=answer.finished_at,
        status=answer.status,
        ip=answer.ip,
        location=_utf8(first("location")),
        retry_after=first("retry-after"),
        cookies=tuple(cookie for text in values.get("set-cookie", ()) if (cookie := _cookie(text))),
        truncated=answer.truncated,
        etag=short("etag"),
        last_modified=short("last-modified"),
        content_type=short("content-type"),
        content_encoding=short("content-encoding", ", "),
        robots_tag=robots_tag if "x-robots-tag" in values else None,
        body=body,
    )


def _utf8(value: str | None) -> str | None:
    """Return a latin-1 header value as the UTF-8 text it usually is."""
    try:
        return value if value is None else value.encode("latin-1").decode("utf-8")
    except (UnicodeDecodeError, UnicodeEncodeError):
        return value


def _cookie(text: str) -> tuple[str, str] | None:
    """Return name and value of a Set-Cookie header (RFC 6265, section 5.2), None for a nameless one."""
    name, equals, value = text.partition(";")[0].partition("=")
    return (name.strip(), value.strip()) if equals and name.strip() else None
