"""What a round makes of its hosts' rows: clocks from the shards, counts from the outcomes."""

from __future__ import annotations

import pytest

from crawler.politeness import usual_latency
from schemas.fetch import OutcomeRow
from schemas.state import HostState
from tests.fakes.sessions import KEYS, state_of
from transforms.hosts import HostUpdate

A, B = "a.example", "b.example"


def outcome(url: str, **facts) -> OutcomeRow:
    state = state_of(url)
    row = OutcomeRow(
        url, state.host_key, state.url_key, "planned", "fetched", None, None, url, 0, 0.5, None, 0
    )
    return row._replace(**facts)


def host_row(name: str, **facts) -> HostState:
    return HostState(name, KEYS.host_key(name), name)._replace(**facts)


def updated(update: HostUpdate) -> dict[str, HostState]:
    return {row.host: row for row in update.updated(None, [])}  # type: ignore[arg-type]


def test_counts_are_added_to_what_the_host_had():
    rows = [outcome(f"http://{A}/{n}", status=200, body_bytes=100 * n) for n in (1, 2)]
    before = host_row(A, fetched_total=7, urls_known=10, bytes_mean=50.0, last_fetch_at=5.0)
    update = HostUpdate([before], rows, [state_of(f"http://{A}/3"), state_of(f"http://{B}/1")])
    update.count_first(before.host_key)
    update.count_found(before.host_key, f"http://{A}/4")
    after = updated(update)
    assert after[A] == before._replace(fetched_total=8, urls_known=12, bytes_mean=100.0)
    assert after[B] == host_row(B, urls_known=1)


def test_the_usual_latency_is_no_hiccups() -> None:
    times = [(0.0, 0.2), (1.0, 1.3), (2.0, 32.0)]
    rows = [
        outcome(f"http://{A}/{n}", started_at=start, finished_at=end, status=200)
        for n, (start, end) in enumerate(times)
    ]
    rows.append(outcome(f"http://{A}/9", started_at=40.0, finished_at=41.0, outcome="failed_retry"))
    first = updated(HostUpdate([host_row(A, latency_seconds=30.0)], rows, []))[A]
    assert first.usual_latency_seconds == usual_latency(first) == pytest.approx(0.3)
    assert first.latency_seconds == 30.0
    second = updated(HostUpdate([first], rows[:1], []))[A]
    assert second.usual_latency_seconds == pytest.approx(0.25)
    assert usual_latency(host_row(A, latency_seconds=30.0)) == 30.0
    assert usual_latency(host_row(A)) is None


def test_a_host_of_which_only_a_seed_is_known_gets_a_row():
    update = HostUpdate([], [], [])
    update.count_found(KEYS.host_key(B), f"http://{B}/seed")
    assert updated(update) == {B: host_row(B, urls_known=1)}


def test_robots_txt_and_failures_are_no_pages_of_a_size():
    rows = [
        outcome(f"http://{A}/1", status=404, body_bytes=9),
        outcome(f"http://{A}/robots.txt", kind="robots"),
    ]
    assert updated(HostUpdate([host_row(A)], rows, []))[A].bytes_mean is None
