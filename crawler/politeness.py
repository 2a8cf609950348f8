"""When a host may be asked again: delays, Retry-After and backoff, as plain arithmetic.

Nothing here reads a clock: every instant is an argument in UTC epoch seconds, and the only
randomness is a hash of the host's name, so the same history always gives the same next instant.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, fields
from datetime import UTC
from email.utils import parsedate_to_datetime
from hashlib import blake2b

from schemas.state import HostState

MAX_RETRY_AFTER_SECONDS = 86_400.0

_REMEDY = {
    "min_delay_seconds": "the seconds between two requests to one host",
    "latency_factor": "how many response times to wait; 0 switches it off",
    "max_delay_seconds": "the longest delay that slow responses may cause",
    "max_crawl_delay_seconds": "the Crawl-delay up to which a host is crawled in full",
    "min_ip_delay_seconds": "the seconds between two requests to one address; 0 switches it off",
    "first_backoff_seconds": "the first pause after a 429 or 503",
    "max_backoff_seconds": "the longest pause after a 429 or 503",
    "backoff_jitter": "the fraction by which a pause may vary",
    "max_host_failures": "how many failures in a row end a host's round",
    "slow_host_urls": "how many URLs a round a host above max_crawl_delay_seconds gets",
}


@dataclass(frozen=True, slots=True)
class PolitenessPolicy:
    """How gently hosts are treated. Seconds are floats; a delay of 0 is allowed.

    A bad value raises ValueError with the value and what to give instead.
    """

    min_delay_seconds: float = 5.0
    latency_factor: float = 2.0
    max_delay_seconds: float = 30.0
    max_crawl_delay_seconds: float = 120.0
    min_ip_delay_seconds: float = 0.5
    first_backoff_seconds: float = 60.0
    max_backoff_seconds: float = 86_400.0
    backoff_jitter: float = 0.1
    max_host_failures: int = 5
    slow_host_urls: int = 10

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not math.isfinite(value) or value < 0:
                raise ValueError(f"{field.name} must be 0 or more, got {value}: give {_REMEDY[field.name]}")
        for name in ("max_host_failures", "slow_host_urls"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be 1 or more, got {getattr(self, name)}: give {_REMEDY[name]}")
        if self.backoff_jitter >= 1:
            raise ValueError(f"backoff_jitter must be below 1, got {self.backoff_jitter}: 0.1 means +-10 %")

    def delay_seconds(
        self,
        crawl_delay_seconds: float | None = None,
        latency_seconds: float | None = None,
        min_delay_seconds: float | None = None,
    ) -> float:
        """Return the pause from the end of one request to a host to the start of the next.

        The largest of three: the Crawl-delay of robots.txt (not in RFC 9309, honoured all the same and
        at its true value, however long), the configured minimum (of an operator's rule, ``min_delay_seconds``,
        and the policy's own the larger), and ``latency_factor`` times the last response time, the last capped at
        ``max_delay_seconds``. Never below the configured minimum.
        """
        minimum = max(self.min_delay_seconds, min_delay_seconds or 0.0)
        adaptive = min(self.max_delay_seconds, self.latency_factor * (latency_seconds or 0.0))
        return max(crawl_delay_seconds or 0.0, minimum, adaptive)

    def is_slow_host(self, crawl_delay_seconds: float | None) -> bool:
        """Return whether a host asks for more patience than a round has: it gets ``slow_host_urls``."""
        return (crawl_delay_seconds or 0.0) > self.max_crawl_delay_seconds

    def backoff_seconds(self, host: str, count: int) -> float:
        """Return the pause after the ``count``-th 429 or 503 in a row (1 is the first).

        Doubles from ``first_backoff_seconds`` to ``max_backoff_seconds``, varied by a hash of host and
        count by at most ``backoff_jitter``, so that hosts which failed together do not return together.
        """
        doublings = min(max(count, 1) - 1, 64)
        pause = min(self.max_backoff_seconds, self.first_backoff_seconds * 2.0**doublings)
        return min(self.max_backoff_seconds, pause * (1.0 + self.backoff_jitter * _signed_unit(host, count)))


def _signed_unit(host: str, count: int) -> float:
    """Return a number in [-1, 1) that depends on nothing but its arguments."""
    digest = blake2b(f"{host} {count}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2.0**63 - 1.0


def parse_retry_after(text: str | None, now: float) -> float | None:
    """Return the instant a Retry-After header names, or None when it says nothing usable.

    Seconds or any of the three HTTP dates (RFC 9110, sections 10.2.3 and 5.6.7). Bounded to one day
    from ``now``; an instant in the past is ``now``.
    """
    value = (text or "").strip()
    if re.fullmatch(r"[0-9]+", value):
        # Twelve digits are past any bound; more would only cost time.
        return now + min(float(value[:12]), MAX_RETRY_AFTER_SECONDS)
    try:
        instant = parsedate_to_datetime(value)
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
    at = (instant if instant.tzinfo else instant.replace(tzinfo=UTC)).timestamp()
    return min(max(at, now), now + MAX_RETRY_AFTER_SECONDS)


def backed_off(
    state: HostState, policy: PolitenessPolicy, now: float, retry_after_at: float | None
) -> HostState:
    """Return the host after a 429 or 503: not asked before its Retry-After, or before the next backoff.

    The count goes on from round to round because it lives in the host's row; ``recovered`` ends it.
    An earlier promise to wait longer stands.
    """
    count = state.backoff_count + 1
    pause_until = (
        now + policy.backoff_seconds(state.host, count) if retry_after_at is None else retry_after_at
    )
    return state._replace(backoff_count=count, not_before_at=max(pause_until, state.not_before_at or 0.0))


def recovered(state: HostState) -> HostState:
    """Return the host after an answer that is no sign of trouble: no failures in a row, no backoff."""
    if state.failures or state.backoff_count or state.not_before_at is not None:
        return state._replace(failures=0, backoff_count=0, not_before_at=None)
    return state


def usual_latency(state: HostState) -> float | None:
    """Return the seconds that a response of this host is likely to take, None for a host never asked.

    The last response time may have been a hiccup, so it counts only where nothing better is known.
    """
    usual = state.usual_latency_seconds
    return state.latency_seconds if usual is None else usual


def ready_at(state: HostState, delay_seconds: float) -> float:
    """Return the first instant (epoch seconds, 0.0 for at once) at which the host may be asked.

    ``max(last fetch + delay, not_before)``: holds across queues, restarts and rounds, because both
    facts are in the host's row.
    """
    rested_at = 0.0 if state.last_fetch_at is None else state.last_fetch_at + delay_seconds
    return max(rested_at, state.not_before_at or 0.0)
