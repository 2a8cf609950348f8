"""Every outcome has a next visit, within bounds, the same from the same history."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.recrawl import (
    RecrawlPolicy,
    after,
    importance,
    interval_seconds,
    jitter_of,
    record_visit,
    settled_outcome,
)
from schemas.fetch import OutcomeRow
from schemas.state import UrlState, UrlStatus

DAY, HOUR, NOW = 86_400.0, 3_600.0, 1_000_000_000.0
POLICY = RecrawlPolicy()
STEADY = RecrawlPolicy(jitter=0.0)


def state(**facts):
    row = UrlState(
        url="http://a.example/",
        host_key=1,
        url_key=2,
        status=UrlStatus.UNFETCHED,
        next_fetch_at=NOW - DAY,
        depth=1,
        priority=0.5,
        discovered_from=None,
        discovered_round=1,
        discovered_at=NOW - DAY,
    )
    return row._replace(**facts)


def row(outcome, reason=None, **facts):
    made = OutcomeRow(
        url="http://a.example/",
        host_key=1,
        url_key=2,
        kind="planned",
        outcome=outcome,
        reason=reason,
        detail=None,
        planned_url="http://a.example/",
        depth=1,
        priority=0.5,
        discovered_from=None,
        retries=0,
        finished_at=NOW,
    )
    return made._replace(**facts)


def wait_days(before, outcome_row, changed=None, policy=STEADY, **facts):
    return (after(before, outcome_row, changed, policy, NOW, **facts).next_fetch_at - NOW) / DAY


def test_first_visit_is_followed_after_the_first_interval():
    seen = after(state(), row("fetched", etag='"x"', payload_digest="sha1:A"), None, STEADY, NOW)
    assert seen.next_fetch_at == pytest.approx(NOW + 30 * DAY)
    assert (seen.status, seen.visits, seen.changes, seen.retries) == (UrlStatus.FETCHED, 1, 0, 0)
    assert (seen.first_visit_at, seen.last_visit_at, seen.etag, seen.payload_digest) == (
        NOW,
        NOW,
        '"x"',
        "sha1:A",
    )
    assert (seen.last_outcome, seen.last_reason) == ("fetched", None)


def test_not_modified_keeps_the_validators_and_fetched_replaces_them():
    before = state(etag='"x"', last_modified="yesterday", payload_digest="sha1:A", visits=1)
    kept = after(before, row("not_modified", "http_304"), False, POLICY, NOW)
    assert (kept.etag, kept.last_modified, kept.payload_digest) == ('"x"', "yesterday", "sha1:A")
    replaced = after(before, row("fetched", payload_digest="sha1:B"), True, POLICY, NOW)
    assert (replaced.etag, replaced.last_modified, replaced.payload_digest) == (None, None, "sha1:B")


def test_changing_pages_come_sooner_and_still_ones_later():
    def followed(changed):
        page, at, waits = state(), NOW, []
        for _ in range(8):
            page = after(page, row("fetched", finished_at=at), changed if page.visits else None, STEADY, at)
            waits.append(page.next_fetch_at - at)
            at = page.next_fetch_at
        return waits

    assert all(later < sooner for sooner, later in itertools.pairwise(followed(True)[:4]))
    still = followed(False)
    assert all(later > sooner for sooner, later in itertools.pairwise(still[:4]))
    assert still[-1] <= 90 * DAY


def test_worth_brings_a_page_back_sooner():
    plain = interval_seconds(state(visits=1), STEADY)
    assert interval_seconds(state(visits=1, inlink_domains=50), STEADY) < plain
    assert interval_seconds(state(visits=1, priority=1.0), STEADY) < plain
    assert importance(state()) == 1.0
    assert 0 < importance(state(priority=0.0)) < importance(state(inlink_domains=10**9)) < 1_000


def test_a_known_budget_sets_the_price():
    cheap, dear = RecrawlPolicy(multiplier_seconds=0.0), RecrawlPolicy(multiplier_seconds=1e12)
    assert interval_seconds(state(visits=1), cheap) == HOUR
    assert interval_seconds(state(visits=1), dear) == 90 * DAY
    assert interval_seconds(state(visits=1), STEADY, prior_rate=1 / DAY) < 10 * DAY


def test_failures_back_off_and_the_sixth_is_the_last():
    page, waits, outcomes = state(), [], []
    for _ in range(7):
        failure = row("failed_retry", "timeout", retries=page.retries, previous_status=page.status)
        outcomes.append(settled_outcome(failure, STEADY.max_retries))
        page = after(page, failure, None, STEADY, NOW)
        waits.append((page.next_fetch_at - NOW) / DAY)
        assert page.last_outcome == outcomes[-1]
    assert waits == [1, 2, 4, 8, 16, 90, 90]
    assert outcomes == ["failed_retry"] * 5 + ["gone"] * 2
    assert page.status == UrlStatus.GONE
    recovered = after(page, row("fetched"), None, STEADY, NOW)
    assert (recovered.retries, recovered.status) == (0, UrlStatus.FETCHED)


@pytest.mark.parametrize("reason", ["http_408", "http_425", "http_429", "http_503"])
def test_signs_of_the_host_cost_no_retry(reason):
    before = state(status=UrlStatus.FAILING, retries=5)
    seen = after(before, row("failed_retry", reason), None, POLICY, NOW)
    assert (seen.status, seen.retries, seen.next_fetch_at) == (UrlStatus.FAILING, 5, NOW + 60)
    told = after(before, row("failed_retry", reason, retry_after_at=NOW + 7_200), None, POLICY, NOW)
    assert told.next_fetch_at == NOW + 7_200


def test_client_errors_are_gone_at_once_and_looked_at_rarely():
    seen = after(state(), row("gone", "http_404"), None, STEADY, NOW)
    assert (seen.status, seen.retries, seen.next_fetch_at) == (UrlStatus.GONE, 0, NOW + 90 * DAY)
    assert wait_days(seen, row("failed_retry", "http_500")) == 1


def test_denied_urls_wait_for_their_robots_txt():
    expires_at = NOW + 5 * HOUR
    assert wait_days(state(), row("robots_denied"), robots_expires_at=expires_at) == pytest.approx(5 / 24)
    assert wait_days(state(), row("robots_denied"), robots_expires_at=NOW - 1) == 1
    page, waits = state(), []
    for _ in range(12):
        page = after(page, row("robots_denied"), None, STEADY, NOW)
        waits.append((page.next_fetch_at - NOW) / DAY)
    assert waits == [1, 1, 1, 2, 4, 8, 16, 32, 64, 90, 90, 90]
    assert page.visits == 0
    failing = row("failed_retry", "timeout", retries=page.retries, previous_status=page.status)
    assert settled_outcome(failing, 5) == "failed_retry"
    assert after(page, failing, None, STEADY, NOW).retries == 1


def test_duplicates_are_visited_less_and_less():
    first = after(state(), row("duplicate", "near_duplicate"), None, STEADY, NOW)
    assert first.next_fetch_at == NOW + 60 * DAY
    again = row("duplicate", "near_duplicate", finished_at=first.next_fetch_at)
    later = after(first, again, False, STEADY, first.next_fetch_at)
    assert later.next_fetch_at - first.next_fetch_at == 90 * DAY
    assert later.status == UrlStatus.DUPLICATE


def test_endless_denials_and_failures_do_not_overflow():
    denied = state(status=UrlStatus.ROBOTS_DENIED, retries=5_000)
    assert wait_days(denied, row("robots_denied")) == 90
    patient = RecrawlPolicy(jitter=0.0, max_retries=10_000)
    failing = state(status=UrlStatus.FAILING, retries=5_000)
    assert wait_days(failing, row("failed_retry", "timeout"), policy=patient) == 90


def test_what_was_not_attempted_stays_as_it_was():
    for outcome_row in (None, row("deferred", "round_deadline")):
        assert after(state(retries=2), outcome_row, None, POLICY, NOW) == state(retries=2)


@pytest.mark.parametrize(
    ("outcome", "reason", "started_at", "is_asked"),
    [
        ("fetched", None, NOW, True),
        ("gone", "http_404", NOW, True),
        ("failed_retry", "http_503", NOW, True),
        ("excluded", "noindex", NOW, True),
        ("failed_retry", "dns_failure", None, False),
        ("robots_denied", "robots_rule", None, False),
        ("excluded", "excluded", None, False),
        ("excluded", "private_address", NOW, False),
        ("deferred", "robots_unreachable", None, False),
    ],
)
def test_a_url_was_asked_once_a_request_for_it_was_sent(outcome, reason, started_at, is_asked):
    settled = row(outcome, reason, started_at=started_at)
    assert after(state(), settled, None, POLICY, NOW).was_asked is is_asked
    assert after(state(was_asked=True), settled, None, POLICY, NOW).was_asked


def test_excluded_urls_wait_longest():
    assert wait_days(state(), row("excluded", "noindex")) == 90


outcomes = st.sampled_from(
    [
        ("fetched", None),
        ("not_modified", "http_304"),
        ("redirected", "redirect_queued"),
        ("duplicate", "exact_duplicate"),
        ("robots_denied", None),
        ("excluded", "noindex"),
        ("failed_retry", "http_503"),
        ("failed_retry", "dns_failure"),
        ("gone", "http_410"),
    ]
)


@given(st.lists(st.tuples(outcomes, st.booleans(), st.floats(0, 400 * DAY)), max_size=12))
def test_any_history_leads_to_a_visit_within_bounds(history):
    page, at = state(), NOW
    for (outcome, reason), changed, pause in history:
        at += pause
        page = after(page, row(outcome, reason, finished_at=at), changed, POLICY, at)
        assert at <= page.next_fetch_at <= at + 90 * DAY
        if outcome in ("fetched", "duplicate", "excluded", "gone"):
            assert page.next_fetch_at >= at + HOUR
        assert 0 <= page.changes <= page.visits
        assert page == after(page, None, None, POLICY, at)


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 1e9)), max_size=8), st.randoms(use_true_random=False))
def test_history_does_not_depend_on_the_order_of_recording(visits, random):
    def recorded(some):
        page = state()
        for changed, at in some:
            page = record_visit(page, changed, at)
        return page

    before = recorded(visits)
    random.shuffle(visits)
    assert recorded(visits) == before


def test_jitter_spreads_evenly_and_repeats():
    factors = [jitter_of(key, 3, 0.2) for key in range(2_000)]
    assert 0.8 <= min(factors) < 0.81
    assert 1.19 < max(factors) < 1.2
    assert sum(factors) / 2_000 == pytest.approx(1.0, abs=0.01)
    assert factors == [jitter_of(key, 3, 0.2) for key in range(2_000)]
    assert jitter_of(1, 4, 0.2) != jitter_of(1, 3, 0.2)


@pytest.mark.parametrize(
    "bad",
    [
        {"recrawl_min_hours": 0.0},
        {"recrawl_max_days": -1.0},
        {"recrawl_max_days": 0.01},
        {"jitter": 1.0},
        {"max_retries": -1},
        {"multiplier_seconds": -1.0},
        {"prior_days": float("inf")},
    ],
)
def test_policy_refuses_what_cannot_work(bad):
    (name,) = bad
    with pytest.raises(ValueError, match=name):
        RecrawlPolicy(**bad)


def test_a_url_behind_an_unreachable_robots_txt_is_looked_at_ever_more_rarely():
    policy, waits = RecrawlPolicy(), []
    known = state()
    for _ in range(25):
        known = after(known, row("deferred", "robots_unreachable"), None, policy, NOW)
        waits.append(known.next_fetch_at - NOW)
    assert waits[:3] == [300.0, 600.0, 1200.0]
    assert waits[-1] == policy.longest_seconds
    assert known.last_outcome == "deferred"
