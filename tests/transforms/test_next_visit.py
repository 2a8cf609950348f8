"""The reason of a next date says what `crawler.recrawl` did to set it."""

from __future__ import annotations

import pytest

from connectors.calendar_lookup import Standing
from connectors.slots import Slot, slot_of
from crawler.recrawl import RecrawlPolicy, after
from schemas.fetch import OutcomeRow
from schemas.state import UrlState
from transforms.crawl_now import instant
from transforms.next_visit import next_visit

NOW = 1_800_000_000.0
POLICY = RecrawlPolicy()
FRESH = UrlState("http://a.example/", 1, 7, "unfetched", NOW, 1, 0.5, None, 1, NOW)


def visited(outcome: str, reason: str | None = None, times: int = 1, changed: bool = False) -> UrlState:
    """Return the row of a URL after so many visits with this outcome."""
    state = FRESH
    for number in range(times):
        row = OutcomeRow(state.url, 1, 7, "planned", outcome, reason, None, state.url, 1, 0.5, None, 0)
        state = after(
            state, row._replace(finished_at=NOW + number * 1e6), changed and number > 0, POLICY, NOW
        )
    return state


def told(
    state: UrlState,
    now: float = NOW,
    tier: int = 0,
    left_out: str | None = None,
    policy: RecrawlPolicy = POLICY,
) -> dict:
    slot = Slot(0, 0, tier) if tier else slot_of(state.next_fetch_at, NOW)
    return next_visit(Standing(state, slot, 1), policy, now, left_out, None, None)


@pytest.mark.parametrize("times", [1, 2, 4])
def test_a_failing_url_waits_twice_as_long_each_time(times: int) -> None:
    state = visited("failed_retry", "timeout", times)
    answer = told(state)
    hours = 24 * 2 ** (times - 1)
    assert answer["why"] == (
        f"failure {times} in a row (timeout), 5 are retried: again after {hours} h, doubled each time"
    )
    assert state.next_fetch_at - (NOW + (times - 1) * 1e6) == pytest.approx(hours * 3600 * answer["jitter"])


def test_the_last_failure_is_the_end_of_retries() -> None:
    assert told(visited("failed_retry", "timeout", 6))["why"].startswith("gone (timeout): looked for again")


@pytest.mark.parametrize("reason", ["http_408", "http_425", "http_429", "http_503"])
def test_a_pause_that_the_host_asks_for_is_told_from_a_failure(reason: str) -> None:
    state = visited("failed_retry", reason)
    assert told(state)["why"] == f"the host asked for a pause ({reason}), which uses up no retry"
    assert told(state)["retries"] == 0


@pytest.mark.parametrize(("outcome", "factor"), [("fetched", 1), ("redirected", 1), ("duplicate", 2)])
def test_the_interval_and_its_jitter_make_the_date(outcome: str, factor: int) -> None:
    state = visited(outcome, None, 3, changed=True)
    answer = told(state)
    assert (answer["visits"], answer["changes"]) == (3, 2)
    waited = state.next_fetch_at - state.last_visit_at
    least = 1e6 if outcome == "duplicate" else 0.0
    longer = max(least, answer["interval_seconds"])
    assert waited == pytest.approx(factor * longer * answer["jitter"], rel=1e-6)
    assert ("at least doubled for a duplicate" in answer["why"]) == (factor == 2)
    assert f"2 changes in 3 visits: an interval of {answer['interval_seconds'] / 3600:.1f} h" in answer["why"]


@pytest.mark.parametrize(
    ("policy", "bound"),
    [(RecrawlPolicy(recrawl_min_hours=2000), "shortest"), (RecrawlPolicy(recrawl_max_days=1), "longest")],
)
def test_an_interval_at_a_bound_says_so(policy: RecrawlPolicy, bound: str) -> None:
    assert f" h, the {bound}, before jitter" in told(visited("fetched"), policy=policy)["why"]


def test_what_is_due_says_since_when_and_what_a_budget_left_out_how_far_it_is() -> None:
    due = told(FRESH, NOW + 1)
    assert due["is_due"] and due["why"].startswith("not fetched yet; due since 2027-01-15 08:00 UTC")
    first = told(FRESH, NOW + 1, tier=1, left_out="host_budget")
    assert first["why"] == "due, and left out by host_budget: its turn comes in the next round"
    assert told(FRESH, NOW + 1, tier=8)["why"].endswith(
        "left out by a budget: its turn comes in about 8 rounds"
    )
    assert first["at"] == instant(NOW)
