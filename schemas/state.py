"""What the crawl remembers between rounds: one row a URL, one a host, one a robots.txt."""

from __future__ import annotations

from typing import NamedTuple


class UrlStatus:
    """How a known URL stands between rounds (not the outcome of one fetch)."""

    UNFETCHED = "unfetched"
    FETCHED = "fetched"
    NOT_MODIFIED = "not_modified"
    REDIRECTED = "redirected"
    DUPLICATE = "duplicate"
    ROBOTS_DENIED = "robots_denied"
    EXCLUDED = "excluded"
    FAILING = "failing"
    GONE = "gone"


class UrlState(NamedTuple):
    """A known URL: exactly one such row stands in the frontier calendar.

    Instants (``_at``) are UTC epoch seconds. Keys are unsigned 64-bit, salted per crawl. ``was_asked`` says
    whether a request for it was ever sent, which a denial or a dead host does not mean.
    """

    url: str
    host_key: int
    url_key: int
    status: str
    next_fetch_at: float
    depth: int
    priority: float
    discovered_from: str | None
    discovered_round: int
    discovered_at: float
    inlink_domains: int = 0
    visits: int = 0
    changes: int = 0
    first_visit_at: float | None = None
    last_visit_at: float | None = None
    retries: int = 0
    etag: str | None = None
    last_modified: str | None = None
    payload_digest: str | None = None
    content_hash: str | None = None
    original_url: str | None = None
    original_date: str | None = None
    original_record_id: str | None = None
    duplicate_of: str | None = None
    in_pages: bool = False
    last_outcome: str | None = None
    last_reason: str | None = None
    original_filename: str | None = None
    original_offset: int | None = None
    original_length: int | None = None
    is_seed: bool = False
    was_asked: bool = False


class HostState(NamedTuple):
    """What is known of one host name; the politeness clock that survives every restart.

    ``urls_known`` are its URLs in URL-seen, ``fetched_total`` those of them that were ever asked for, each
    counted once however often it is visited. ``latency_seconds`` is the last response time, which the adaptive
    delay follows; ``usual_latency_seconds`` is what plans go by.
    """

    host: str
    host_key: int
    registered_domain: str
    ip: str | None = None
    delay_seconds: float | None = None
    latency_seconds: float | None = None
    last_fetch_at: float | None = None
    not_before_at: float | None = None
    backoff_count: int = 0
    failures: int = 0
    robots_fetched_at: float | None = None
    robots_status: int | None = None
    urls_known: int = 0
    urls_waiting: int = 0
    fetched_total: int = 0
    bytes_mean: float | None = None
    usual_latency_seconds: float | None = None


class RobotsState(NamedTuple):
    """The last answer of one authority (scheme, host, port) to a request for its robots.txt.

    ``body`` holds the bytes to parse (at most 500 KiB), empty unless ``access`` is ``rules``.
    """

    authority: str
    host_key: int
    fetched_at: float
    expires_at: float
    access: str
    status: int | None
    reason: str | None
    body: bytes
    record_id: str | None = None


class DomainRules(NamedTuple):
    """The operator's rules for one registered domain or host; None means the crawl's default."""

    exclude: bool = False
    exclude_paths: tuple[str, ...] = ()
    min_delay_seconds: float | None = None
    round_urls: int | None = None
    total_urls: int | None = None
    max_depth: int | None = None
    priority: float | None = None
    insecure_tls: bool = False
