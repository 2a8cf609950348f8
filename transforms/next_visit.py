"""When a known URL is visited next, and the numbers that say why. Imports no Beam."""

from __future__ import annotations

from typing import Any

from connectors.calendar_lookup import Standing
from crawler.freshness import change_rate
from crawler.ranks import DAY_SECONDS
from crawler.recrawl import (
    HOUR_SECONDS,
    IN_GOOD_ORDER,
    RecrawlPolicy,
    importance,
    interval_seconds,
    jitter_of,
)
from schemas.state import HostState, RobotsState, UrlState, UrlStatus
from transforms.crawl_now import instant

_PAUSES = frozenset({"http_408", "http_425", "http_429", "http_503"})


def next_visit(
    standing: Standing,
    policy: RecrawlPolicy,
    now: float,
    left_out: str | None,
    robots: RobotsState | None,
    host: HostState | None,
) -> dict[str, Any]:
    """Return the instant of the next visit, why it is then, and what that was computed from, as members.

    ``left_out`` names the budget that keeps a due URL waiting, where it is known. ``policy`` is that
    of the round that set the date.
    """
    state, tier = standing.state, standing.slot.tier
    return {
        "at": instant(state.next_fetch_at),
        "is_due": state.next_fetch_at <= now,
        "why": _why(state, tier, policy, now, left_out),
        "status": state.status,
        "left_out": left_out,
        "backlog_tier": tier or None,
        "slot": standing.slot.name,
        "retries": state.retries,
        "max_retries": policy.max_retries,
        "host_not_before_at": instant(host.not_before_at) if host else None,
        "robots_expires_at": instant(robots.expires_at) if robots else None,
        **_recrawl(state, policy),
    }


def _recrawl(state: UrlState, policy: RecrawlPolicy) -> dict[str, Any]:
    """Return the URL's history of changes and the interval that follows from it."""
    span_seconds = (state.last_visit_at or 0.0) - (state.first_visit_at or 0.0)
    rate = change_rate(state.visits, state.changes, span_seconds, policy.prior_rate)
    in_order = state.status in IN_GOOD_ORDER
    return {
        "visits": state.visits,
        "changes": state.changes,
        "first_visit_at": instant(state.first_visit_at),
        "last_visit_at": instant(state.last_visit_at),
        "changes_per_day": rate * DAY_SECONDS if in_order else None,
        "importance": importance(state),
        "interval_seconds": interval_seconds(state, policy) if in_order else None,
        "jitter": jitter_of(state.url_key, state.visits, policy.jitter),
        "shortest_interval_seconds": policy.shortest_seconds,
        "longest_interval_seconds": policy.longest_seconds,
    }


def _why(state: UrlState, tier: int, policy: RecrawlPolicy, now: float, left_out: str | None) -> str:
    if tier:
        rounds = "the next round" if tier == 1 else f"about {tier} rounds"
        return f"due, and left out by {left_out or 'a budget'}: its turn comes in {rounds}"
    rule = _rule(state, policy)
    if state.next_fetch_at > now:
        return rule
    return f"{rule}; due since {instant(state.next_fetch_at):%Y-%m-%d %H:%M} UTC: the next round may take it"


def _rule(state: UrlState, policy: RecrawlPolicy) -> str:
    """Return the rule of `crawler.recrawl` that set the date."""
    longest = f"the longest interval, {policy.recrawl_max_days:g} days"
    if state.status == UrlStatus.UNFETCHED:
        return "not fetched yet"
    if state.status == UrlStatus.GONE:
        return f"gone ({state.last_reason}): looked for again after {longest}"
    if state.status == UrlStatus.EXCLUDED:
        return f"excluded ({state.last_reason}): looked at again after {longest}"
    if state.status == UrlStatus.FAILING:
        if state.last_reason in _PAUSES:
            return f"the host asked for a pause ({state.last_reason}), which uses up no retry"
        hours = policy.first_retry_hours * 2.0 ** max(0, state.retries - 1)
        return (
            f"failure {state.retries} in a row ({state.last_reason}), {policy.max_retries} are retried: "
            f"again after {hours:g} h, doubled each time"
        )
    if state.status == UrlStatus.ROBOTS_DENIED:
        return (
            f"robots.txt forbids it (time {state.retries} in a row): asked again when that copy has expired"
        )
    return _why_in_order(state, policy)


def _why_in_order(state: UrlState, policy: RecrawlPolicy) -> str:
    seconds = interval_seconds(state, policy)
    bound = {policy.shortest_seconds: ", the shortest", policy.longest_seconds: ", the longest"}.get(
        seconds, ""
    )
    changes = f"{state.changes} changes in {state.visits} visits" if state.visits > 1 else "one visit so far"
    doubled = ", at least doubled for a duplicate" if state.status == UrlStatus.DUPLICATE else ""
    return f"{changes}: an interval of {seconds / HOUR_SECONDS:.1f} h{bound}{doubled}, before jitter"
