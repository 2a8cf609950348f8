"""The crawl flags of one round: every knob of the contract, validated, with its default."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

ENGINE_FLAGS = frozenset(
    {"runner", "fetch_concurrency", "page_processes", "checkpoint_seconds", "lease_seconds"}
)

MOST_WARC_BYTES = 2_000_000_000


class FlagError(ValueError):
    """A flag with a value that cannot be used; the text names the value and the remedy."""


@dataclass(frozen=True)
class CrawlFlags:
    """What the operator asked for. Units are in the names; None means "derived" as the contract says."""

    user_agent: str = "roundcrawl/0.1"
    contact: str | None = None
    min_delay_seconds: float = 5.0
    latency_factor: float = 2.0
    max_delay_seconds: float = 30.0
    max_crawl_delay_seconds: float = 120.0
    min_ip_delay_seconds: float = 0.5
    round_minutes: float = 60.0
    round_urls: int = 100_000
    host_round_urls: int | None = None
    host_total_urls: int = 100_000
    domain_round_urls: int | None = None
    max_domain_hosts: int = 10_000
    max_depth: int = 20
    max_url_length: int = 2048
    max_path_segments: int = 20
    max_body_bytes: int = 5_242_880
    max_redirects: int = 5
    max_retries: int = 5
    connect_timeout_seconds: float = 10.0
    read_timeout_seconds: float = 30.0
    fetch_timeout_seconds: float = 120.0
    robots_ttl_hours: float = 24.0
    recrawl_min_hours: float = 1.0
    recrawl_max_days: float = 90.0
    near_dup_threshold: float = 0.8
    fetch_concurrency: int = 128
    page_processes: int | None = None
    shards: int | None = None
    checkpoint_seconds: float = 60.0
    lease_seconds: float = 180.0
    warc_max_bytes: int = 1_000_000_000
    nameservers: tuple[str, ...] = ()
    connect_to: tuple[str, ...] = ()
    allow_private_addresses: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot work, naming the value and the remedy."""
        for name in POSITIVE:
            if getattr(self, name) is not None and getattr(self, name) <= 0:
                raise FlagError(f"--{name} must be greater than 0, got {getattr(self, name)}")
        for name in NOT_NEGATIVE:
            if getattr(self, name) < 0:
                raise FlagError(f"--{name} must be 0 or more, got {getattr(self, name)}")
        if self.warc_max_bytes > MOST_WARC_BYTES:
            raise FlagError(
                f"--warc_max_bytes={self.warc_max_bytes} is too large: offsets are 32-bit in the captures table; "
                f"give at most {MOST_WARC_BYTES}"
            )
        if not 0.5 <= self.near_dup_threshold <= 1:
            raise FlagError(f"--near_dup_threshold must be from 0.5 to 1, got {self.near_dup_threshold}")
        if self.recrawl_max_days * 24 < self.recrawl_min_hours:
            raise FlagError(
                f"--recrawl_max_days={self.recrawl_max_days} is shorter than --recrawl_min_hours="
                f"{self.recrawl_min_hours}; raise the first or lower the second"
            )

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values, every flag by name."""
        return asdict(self)

    @staticmethod
    def from_json(values: dict[str, Any]) -> CrawlFlags:
        """Return the flags that `to_json` wrote; names of a later version are an error."""
        known = {field.name for field in fields(CrawlFlags)}
        unknown = sorted(set(values) - known)
        if unknown:
            raise FlagError(f"the plan holds flags that this version does not know: {', '.join(unknown)}")
        members: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
        return CrawlFlags(**members)


POSITIVE = (
    "round_minutes",
    "round_urls",
    "host_round_urls",
    "host_total_urls",
    "domain_round_urls",
    "max_domain_hosts",
    "max_url_length",
    "max_path_segments",
    "max_body_bytes",
    "connect_timeout_seconds",
    "read_timeout_seconds",
    "fetch_timeout_seconds",
    "robots_ttl_hours",
    "recrawl_min_hours",
    "recrawl_max_days",
    "fetch_concurrency",
    "page_processes",
    "shards",
    "checkpoint_seconds",
    "lease_seconds",
    "warc_max_bytes",
)
NOT_NEGATIVE = (
    "min_delay_seconds",
    "latency_factor",
    "max_delay_seconds",
    "max_crawl_delay_seconds",
    "min_ip_delay_seconds",
    "max_depth",
    "max_redirects",
    "max_retries",
)
