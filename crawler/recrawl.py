"""When a known URL is visited again, whatever became of it this time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from hashlib import blake2b

from crawler.freshness import GREATEST_WEIGHT, LEAST_WEIGHT, change_rate, visit_rate
from crawler.outcomes import was_asked
from crawler.ranks import DAY_SECONDS
from schemas.fetch import OutcomeRow
from schemas.state import UrlState, UrlStatus

HOUR_SECONDS = 3_600.0
ROBOTS_RETRY_SECONDS = 300.0
_FREE_REASONS = frozenset({"http_408", "http_425", "http_429", "http_503"})
_STATUS_OF = {
    "fetched": UrlStatus.FETCHED,
    "not_modified": UrlStatus.NOT_MODIFIED,
    "redirected": UrlStatus.REDIRECTED,
    "duplicate": UrlStatus.DUPLICATE,
    "robots_denied": UrlStatus.ROBOTS_DENIED,
    "excluded": UrlStatus.EXCLUDED,
    "failed_retry": UrlStatus.FAILING,
    "gone": UrlStatus.GONE,
}
_VISITED = frozenset({"fetched", "not_modified", "redirected", "duplicate"})
IN_GOOD_ORDER = frozenset(_STATUS_OF[outcome] for outcome in _VISITED)
"""How a URL stands whose next visit follows from its worth and its changes."""


@dataclass(frozen=True, slots=True)
class RecrawlPolicy:
    """The operator's bounds and the price of a visit. A bad value raises ValueError.

    A page of unknown history is taken to change every ``prior_days`` (the mean that Cho and Garcia-Molina
    measured, VLDB 2000) until its own visits outweigh that. ``multiplier_seconds`` is the Lagrange
    multiplier of the visit budget, as ``solve_multiplier`` gives it: the shortest interval of a page of
    ordinary importance. None: the one at which a page of unknown history comes back after
    ``first_interval_days``.
    """

    recrawl_min_hours: float = 1.0
    recrawl_max_days: float = 90.0
    first_interval_days: float = 30.0
    prior_days: float = 120.0
    first_retry_hours: float = 24.0
    max_retries: int = 5
    free_retry_seconds: float = 60.0
    robots_ttl_hours: float = 24.0
    robots_patience: int = 3
    jitter: float = 0.2
    multiplier_seconds: float | None = None

    def __post_init__(self) -> None:
        for name in ("recrawl_min_hours", "recrawl_max_days", "first_interval_days", "prior_days"):
            _require(0 < getattr(self, name) < math.inf, name, "greater than 0", getattr(self, name))
        for name in ("first_retry_hours", "free_retry_seconds", "robots_ttl_hours"):
            _require(0 <= getattr(self, name) < math.inf, name, "0 or more", getattr(self, name))
        for name in ("max_retries", "robots_patience"):
            _require(getattr(self, name) >= 0, name, "0 or more", getattr(self, name))
        _require(0 <= self.jitter < 1, "jitter", "from 0 to below 1", self.jitter)
        longest_days = self.recrawl_max_days
        _require(
            24 * longest_days >= self.recrawl_min_hours, "recrawl_max_days", "the longer bound", longest_days
        )
        price = self.multiplier_seconds
        _require(price is None or price >= 0, "multiplier_seconds", "0 or more", price)

    @property
    def shortest_seconds(self) -> float:
        """Return the least interval between two visits."""
        return self.recrawl_min_hours * HOUR_SECONDS

    @property
    def longest_seconds(self) -> float:
        """Return the greatest interval between two visits."""
        return self.recrawl_max_days * DAY_SECONDS

    @property
    def prior_rate(self) -> float:
        """Return the changes a second of a page of unknown history."""
        return 1.0 / (self.prior_days * DAY_SECONDS)

    @property
    def price_seconds(self) -> float:
        """Return the multiplier in force."""
        if self.multiplier_seconds is not None:
            return self.multiplier_seconds
        visit_rate = 1.0 / (self.first_interval_days * DAY_SECONDS)
        return self.prior_rate / (visit_rate * (visit_rate + self.prior_rate))


def _require(holds: bool, name: str, wanted: str, value: object) -> None:
    if not holds:
        raise ValueError(f"{name} must be {wanted}, got {value}")


def importance(state: UrlState) -> float:
    """Return how much a fresh copy of this URL is worth: 1 for priority 0.5 and no link from elsewhere.

    Proportional to priority and to the linking domains, whose number stands in for the requests that Azar
    et al. (2018) weigh by: both spread over the Web with the same heavy tail.
    """
    worth = 2.0 * state.priority * (1 + state.inlink_domains)
    return min(max(worth, LEAST_WEIGHT), GREATEST_WEIGHT)


def interval_seconds(state: UrlState, policy: RecrawlPolicy, prior_rate: float | None = None) -> float:
    """Return the seconds until the next visit of a page in good order, within the policy's bounds.

    ``prior_rate`` is the mean rate of the page's host, where known. No jitter is applied.
    """
    span_seconds = (state.last_visit_at or 0.0) - (state.first_visit_at or 0.0)
    prior = policy.prior_rate if prior_rate is None else prior_rate
    rate = change_rate(state.visits, state.changes, span_seconds, prior)
    wanted = 1.0 / visit_rate(importance(state), rate, policy.price_seconds)
    return min(max(wanted, policy.shortest_seconds), policy.longest_seconds)


def jitter_of(url_key: int, visits: int, width: float) -> float:
    """Return a factor in [1 - width, 1 + width) that depends on nothing but its arguments."""
    digest = blake2b(f"{url_key} {visits}".encode(), digest_size=8).digest()
    return 1.0 + width * (int.from_bytes(digest, "big") / 2.0**63 - 1.0)


def record_visit(state: UrlState, changed: bool | None, at: float) -> UrlState:
    """Return the URL's history with one more look at its content; visits may be recorded in any order.

    ``changed`` is None when there was nothing to compare with.
    """
    return state._replace(
        visits=state.visits + 1,
        changes=state.changes + bool(changed),
        first_visit_at=at if state.first_visit_at is None else min(at, state.first_visit_at),
        last_visit_at=at if state.last_visit_at is None else max(at, state.last_visit_at),
    )


def settled_outcome(row: OutcomeRow, max_retries: int) -> str:
    """Return the outcome of a row, ``gone`` where a failure comes after the last retry.

    408, 425, 429 and 503 are signs of a host's state and never use up a retry.
    """
    spends = row.outcome == "failed_retry" and row.reason not in _FREE_REASONS
    return "gone" if spends and _failures(row.previous_status, row.retries) >= max_retries else row.outcome


def _failures(status: str | None, retries: int) -> int:
    """Return the failures in a row so far: for a URL that robots.txt denies, retries counts denials."""
    return 0 if status == UrlStatus.ROBOTS_DENIED else retries


def after(
    state: UrlState,
    row: OutcomeRow | None,
    changed: bool | None,
    policy: RecrawlPolicy,
    now: float,
    robots_expires_at: float | None = None,
    prior_rate: float | None = None,
) -> UrlState:
    """Return a URL's row after a round: its history with this outcome, and the instant it is due again.

    ``row`` is None when the round left the URL out; such a URL, and a deferred one, stays as it was. ``now``
    stands in for a row without an end. ``changed`` says whether the content differs from that of the last
    visit (None: nothing to compare with). ``robots_expires_at`` is when the robots.txt that denied the URL is
    asked for again (None or past: after ``robots_ttl_hours``). ``prior_rate`` is the mean change rate of the
    page's host.

    Total: every outcome of the contract has a next visit, not before ``now`` and at most the longest
    interval away (longer only if Retry-After says so). The content's identity (``content_hash``,
    ``duplicate_of``, ``in_pages``, ``original_*``) is left to the caller.
    """
    if row is None or row.outcome == "deferred":
        return state if row is None or row.reason != "robots_unreachable" else _put_off(state, policy, now)
    outcome = settled_outcome(
        row._replace(previous_status=state.status, retries=state.retries), policy.max_retries
    )
    at = now if row.finished_at is None else row.finished_at
    seen = _remember(state, row, outcome)
    if outcome in _VISITED:
        seen = record_visit(seen, changed, at)
    wait_seconds = _wait(state, seen, row, at, policy, robots_expires_at, prior_rate)
    return seen._replace(next_fetch_at=max(at + wait_seconds, now, row.retry_after_at or 0.0))


def _put_off(state: UrlState, policy: RecrawlPolicy, now: float) -> UrlState:
    """Return the row of a URL whose robots.txt could not be had: looked at again ever more rarely.

    From five minutes, doubling, to the longest interval; a dead site costs a request a season in the end.
    """
    retries = _failures(state.status, state.retries) + 1
    wanted = ROBOTS_RETRY_SECONDS * 2.0 ** min(retries - 1, 30)
    return state._replace(
        status=UrlStatus.FAILING,
        retries=retries,
        next_fetch_at=now + min(wanted, policy.longest_seconds),
        last_outcome="deferred",
        last_reason="robots_unreachable",
    )


def _remember(state: UrlState, row: OutcomeRow, outcome: str) -> UrlState:
    failures = _failures(state.status, state.retries)
    denials = state.retries if state.status == UrlStatus.ROBOTS_DENIED else 0
    retries = {"robots_denied": denials + 1, "failed_retry": failures}.get(outcome, 0)
    if row.outcome == "failed_retry" and row.reason not in _FREE_REASONS:
        retries = failures + (outcome == "failed_retry")
    seen = state._replace(
        status=_STATUS_OF[outcome],
        retries=retries,
        last_outcome=outcome,
        last_reason=row.reason,
        was_asked=state.was_asked or was_asked(row),
    )
    if outcome not in _VISITED:
        return seen
    kept = outcome == "not_modified"
    return seen._replace(
        etag=row.etag or (state.etag if kept else None),
        last_modified=row.last_modified or (state.last_modified if kept else None),
        payload_digest=row.payload_digest or (state.payload_digest if kept else None),
    )


def _wait(
    state: UrlState,
    seen: UrlState,
    row: OutcomeRow,
    at: float,
    policy: RecrawlPolicy,
    robots_expires_at: float | None,
    prior_rate: float | None,
) -> float:
    """Return the seconds from the end of this visit to the next."""
    outcome = seen.last_outcome
    if outcome == "failed_retry" and row.reason in _FREE_REASONS:
        return policy.free_retry_seconds
    wanted = policy.longest_seconds
    if outcome == "failed_retry":
        wanted = policy.first_retry_hours * HOUR_SECONDS * _doubled(seen.retries - 1)
    elif outcome == "robots_denied":
        ttl_seconds = policy.robots_ttl_hours * HOUR_SECONDS
        expiry_seconds = (robots_expires_at or 0.0) - at
        if expiry_seconds <= 0:
            expiry_seconds = ttl_seconds
        # A denial looked at in vain day after day would crowd out the host's other URLs.
        return min(expiry_seconds * _doubled(seen.retries - policy.robots_patience), policy.longest_seconds)
    elif outcome in _VISITED:
        wanted = interval_seconds(seen, policy, prior_rate)
    if outcome == "duplicate":
        wanted = 2.0 * max(wanted, at - (at if state.last_visit_at is None else state.last_visit_at))
    wanted *= jitter_of(seen.url_key, seen.visits, policy.jitter)
    return min(max(wanted, policy.shortest_seconds), policy.longest_seconds)


def _doubled(times: int) -> float:
    return 2.0 ** min(max(times, 0), 32)
