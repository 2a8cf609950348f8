"""A visit costs as much as it takes to keep the revisits within what the rounds have for them."""

from __future__ import annotations

from collections import Counter

import pytest

from crawler.price import REMEMBERED_ROUNDS, Means, change_of_cells, mean_interval, price_of
from crawler.recrawl import RecrawlPolicy, interval_seconds, record_visit
from schemas.state import UrlStatus
from tests.fakes.sessions import state_of

DAY = 86_400.0
POLICY = RecrawlPolicy(jitter=0.0)


def pages(count: int, **facts):
    fetched = {"status": UrlStatus.FETCHED, "visits": 1, "first_visit_at": 0.0, "last_visit_at": 0.0}
    return [
        state_of(f"http://a.example/{n}", inlink_domains=n % 40, **{**fetched, **facts}) for n in range(count)
    ]


def asked_a_day(states, price: float) -> float:
    policy = RecrawlPolicy(multiplier_seconds=price)
    return sum(DAY / interval_seconds(state, policy) for state in states)


def test_a_crawl_with_room_to_spare_pays_the_policys_own_price():
    cells = change_of_cells([], pages(100), POLICY)
    assert cells.total() == 100
    assert price_of(cells, Means(100_000, 0, DAY), POLICY) == POLICY.price_seconds
    assert price_of(cells, Means(100_000, 0, None), POLICY) == POLICY.price_seconds
    assert price_of({}, Means(1, 0, DAY), POLICY) == POLICY.price_seconds


@pytest.mark.parametrize(("first_asked", "room"), [(0, 100), (40, 60), (70, 30), (100, 30)])
def test_revisits_get_what_new_urls_leave_and_a_share_in_any_case(first_asked, room):
    states = pages(4_000)
    price = price_of(change_of_cells([], states, POLICY), Means(100, first_asked, DAY), POLICY)
    assert price > POLICY.price_seconds
    assert asked_a_day(states, price) == pytest.approx(max(room, 4_000 / 90), rel=0.05)


def test_what_no_budget_can_pay_for_is_visited_at_the_longest_interval():
    states = pages(4_000)
    price = price_of(change_of_cells([], states, POLICY), Means(10, 10, DAY), POLICY)
    longest = RecrawlPolicy(multiplier_seconds=price)
    assert {interval_seconds(state, longest) for state in states} == {90 * DAY}


def test_counts_follow_each_page_through_its_visits_and_out_of_the_crawl():
    before = [[], pages(50)]
    visited = [record_visit(state, changed=n % 3 == 0, at=DAY * n) for n, state in enumerate(pages(50))]
    gone = [state._replace(status=UrlStatus.GONE) for state in visited[:20]]
    total: Counter[str] = Counter()
    for old, new in ((before[0], before[1]), (before[1], visited), (visited[:20], gone)):
        for name, change in change_of_cells(old, new, POLICY).items():
            total[name] += change
    assert {name: count for name, count in total.items() if count} == change_of_cells(
        [], visited[20:], POLICY
    )
    assert change_of_cells([], gone, POLICY) == change_of_cells(visited, visited, POLICY) == {}


def test_intervals_between_rounds_are_averaged_over_the_last_ones():
    mean = None
    for rounds in range(3):
        mean = mean_interval(mean, [30.0, 10.0, 20.0][rounds], rounds)
    assert mean == 20.0
    for _ in range(100):
        mean = mean_interval(mean, 100.0, 50)
    assert mean == pytest.approx(100.0, rel=1e-4)
    assert mean_interval(100.0, 0.0, 50) == 100.0 - 100.0 / REMEMBERED_ROUNDS
    assert mean_interval(None, -5.0, 0) == 0.0
