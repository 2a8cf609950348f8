"""Figures of a report: parts add up to the whole, and the whole is what a plain count says."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.tables import arrow_schema
from transforms.report.captures import COLUMNS, CaptureFigures, partition_figures
from transforms.report.counts import OTHERS, Histogram, Moments, bounded, largest
from transforms.report.frontier import COLUMNS as FRONTIER_COLUMNS
from transforms.report.frontier import DUE_BOUNDS, frontier_figures
from transforms.report.hosts import LISTED
from transforms.report.pace import Clock, pace_of

HOUR, DAY = 3_600.0, 86_400.0
NOW = 1_790_000_000.0
SCHEMA = pa.schema([arrow_schema("captures").field(name) for name in COLUMNS])
REASONS = ["http_404", "http_503", "timeout", "robots_rule", "robots_unreachable", None]


def capture(host: str, at: float | None = None, seconds: float = 0.5, **facts: Any) -> dict[str, Any]:
    """Return a captures row, with the columns that a report reads."""
    row = dict.fromkeys(COLUMNS) | {
        "url_host_name": host,
        "kind": "planned",
        "outcome": "fetched",
        "depth": 1,
    }
    if at is not None:
        times = {"started_at": round(at * 1e6), "finished_at": round((at + seconds) * 1e6)}
        row |= {**times, "fetch_millis": round(seconds * 1000), "host_delay_seconds": 5.0}
    return row | facts


def batch(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def figures(*rows: dict[str, Any]) -> CaptureFigures:
    return partition_figures([batch(list(rows))])


captures = st.lists(
    st.builds(
        capture,
        host=st.sampled_from([f"h{number}.example" for number in range(14)]),
        at=st.none() | st.floats(NOW, NOW + 100).map(lambda at: round(at, 3)),
        seconds=st.sampled_from([0.0, 0.05, 1.5, 30.0]),
        kind=st.sampled_from(["planned", "planned", "hop", "robots"]),
        outcome=st.sampled_from(["fetched", "gone", "failed_retry", "robots_denied", "deferred"]),
        reason=st.sampled_from(REASONS),
        robots_rule=st.sampled_from([None, "Disallow: /", "Disallow: /a"]),
        subset=st.sampled_from([None, "warc", "crawldiagnostics"]),
        content_mime_detected=st.sampled_from([None, "text/html", "text/plain"]),
        content_mime_type=st.sampled_from([None, "text/html"]),
        warc_record_length=st.sampled_from([300, 4_000, 90_000]),
    ),
    max_size=40,
)


@given(rows=captures, cut=st.integers(0, 40))
def test_batches_of_any_size_give_the_figures_of_the_whole(rows: list[dict[str, Any]], cut: int) -> None:
    whole = partition_figures([batch(rows)])
    split = partition_figures([batch(rows[:cut]), batch(rows[cut:])])
    assert same(whole) == same(split)


@given(rows=captures)
def test_partitions_merge_to_the_figures_of_the_whole(rows: list[dict[str, Any]]) -> None:
    whole = partition_figures([batch(rows)])
    is_left = {row["url_host_name"]: number % 2 for number, row in enumerate(rows)}
    parts = [
        partition_figures([batch([r for r in rows if is_left[r["url_host_name"]] == side])])
        for side in (0, 1)
    ]
    for order in (parts, parts[::-1]):
        merged = CaptureFigures()
        for part in order:
            merged.merge(part)
        assert same(merged) == same(whole)


def same(found: CaptureFigures) -> dict[str, Any]:
    """Return figures as values that compare, sums of floats rounded."""
    members = dict(vars(found))
    for name in ("sizes", "millis"):
        one = members.pop(name)
        members[name] = (one.counts.tolist(), one.values, round(one.total, 3), one.largest)
    for name in ("slowest", "failing", "denied"):
        members[name] = [tuple(round(v, 3) if isinstance(v, float) else v for v in r) for r in members[name]]
    return members


@given(rows=captures)
def test_figures_are_what_a_plain_count_says(rows: list[dict[str, Any]]) -> None:
    found = partition_figures([batch(rows)])
    asked = [row for row in rows if row["started_at"] is not None]
    assert found.kinds == Counter(row["kind"] for row in rows)
    assert sum(found.requests.values()) == len(asked)
    assert sum(found.done.values()) == sum(row["kind"] == "planned" for row in asked)
    assert found.hosts_asked == len({row["url_host_name"] for row in asked})
    assert found.hosts == len({row["url_host_name"] for row in rows})
    spans = {
        host: max(r["finished_at"] for r in asked if r["url_host_name"] == host)
        - min(r["started_at"] for r in asked if r["url_host_name"] == host)
        for host in {row["url_host_name"] for row in asked}
    }
    longest = sorted((span / 1e6 for span in spans.values() if span), reverse=True)[:LISTED]
    assert [row.seconds for row in found.slowest] == pytest.approx(longest)
    stored = [row for row in rows if row["subset"] == "warc" and row["kind"] != "robots"]
    assert sum(found.types.values()) == len(stored) == found.sizes.values
    assert sum(found.type_bytes.values()) == sum(row["warc_record_length"] for row in stored)


def test_errors_of_pages_are_not_errors_of_their_host() -> None:
    found = figures(
        *[capture("a.example", NOW, outcome="gone", reason="http_404") for _ in range(9)],
        capture("b.example", NOW, outcome="failed_retry", reason="timeout"),
        capture("b.example", NOW, outcome="failed_retry", reason="http_500"),
        capture("b.example", NOW, outcome="gone", reason="http_500"),
        capture("b.example", NOW, outcome="gone", reason="http_410"),
    )
    (row,) = found.failing
    assert (row.host, row.failed, row.gone, row.reason) == ("b.example", 3, 1, "http_500")


def test_the_line_of_robots_txt_that_kept_most_urls_back_is_named() -> None:
    denied = {"outcome": "robots_denied", "reason": "robots_rule"}
    found = figures(
        *[capture("a.example", robots_rule="Disallow: /a", **denied) for _ in range(2)],
        *[capture("a.example", robots_rule="Disallow: /b", **denied) for _ in range(3)],
        capture("b.example", outcome="deferred", reason="robots_unreachable"),
    )
    assert [(row.host, row.denied, row.rule) for row in found.denied] == [
        ("a.example", 5, "Disallow: /b"),
        ("b.example", 1, ""),
    ]


@given(values=st.lists(st.floats(0, 2_000), min_size=1, max_size=60), share=st.floats(0.01, 1))
def test_a_quantile_lies_in_the_bin_of_the_true_one(values: list[float], share: float) -> None:
    edges = (0.0, 1, 10, 100, 1_000)
    found = Histogram.over(edges)
    found.add(np.array(values))
    true = sorted(values)[max(0, int(np.ceil(share * len(values))) - 1)]
    place = min(int(np.searchsorted(edges, true, "right")) - 1, 3)
    assert edges[place] <= found.quantile(share) <= max(true, edges[place + 1])
    assert found.counts.sum() == len(values) == found.values


def test_names_that_servers_choose_take_bounded_room() -> None:
    counts = Counter({f"name-{number}": number for number in range(100)})
    kept = bounded(counts, 10)
    assert len(kept) == 10 and sum(kept.values()) == sum(counts.values())
    assert largest(kept, 2) == [(OTHERS, sum(range(91))), ("name-99", 99)]
    assert bounded(counts, 100) is counts


def test_hosts_are_active_from_their_first_to_their_last_request() -> None:
    found = figures(
        capture("a.example", NOW, 1.0),
        capture("a.example", NOW + 9, 1.0),
        capture("b.example", NOW + 4, 1.0),
    )
    pace = pace_of(found)
    assert pace is not None and pace.width == 0.1
    active = dict(zip(np.round(pace.starts, 1).tolist(), pace.active.tolist(), strict=True))
    assert [active[at] for at in (0.0, 3.9, 4.0, 5.0, 5.2, 9.9)] == [1, 1, 2, 2, 1, 1]
    assert pace.requests.sum() * pace.width == pytest.approx(3)
    assert pace.reached == pytest.approx((5.1, 10.1, 10.1, 10.1))


def test_a_pause_of_a_stopped_round_is_left_out_and_told() -> None:
    hours = 8 * HOUR
    pace = pace_of(figures(capture("a.example", NOW, 10.0), capture("a.example", NOW + hours, 10.0)))
    assert pace is not None
    assert pace.standstills == pytest.approx((hours - 10,))
    assert pace.seconds == pytest.approx(20.2, abs=0.11)
    assert Clock([0, 5]).standstills == ()


def test_a_round_that_asked_nothing_has_no_pace() -> None:
    assert pace_of(figures(capture("a.example", outcome="deferred", reason="round_deadline"))) is None
    assert pace_of(CaptureFigures()) is None


def test_moments_leave_out_what_never_happened() -> None:
    moments = Moments()
    moments.add(np.array([1.0, np.nan, 1.05, 2.0]))
    assert moments == {10: 2, 20: 1}


def frontier(*rows: tuple[float, float, int, int, float | None, bool]) -> Any:
    names = ["next_fetch_at", "priority", "visits", "changes", "last_visit_at", "in_pages"]
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    columns["status"] = ["fetched"] * len(rows)
    types = {"last_visit_at": pa.float64()}
    table = pa.table({name: pa.array(columns[name], types.get(name)) for name in FRONTIER_COLUMNS})
    whole = frontier_figures([table], NOW)
    split = frontier_figures([table.slice(0, 1)], NOW)
    split.merge(frontier_figures([table.slice(1)], NOW))
    assert {k: np.asarray(v).tolist() for k, v in vars(whole).items() if k != "statuses"} == {
        k: np.asarray(v).tolist() for k, v in vars(split).items() if k != "statuses"
    }
    assert whole.statuses == split.statuses
    return whole


def test_the_frontier_is_counted_by_priority_and_wait() -> None:
    found = frontier(
        (NOW, 0.0, 0, 0, None, False),
        (NOW - DAY, 1.0, 0, 0, None, False),
        (NOW + HOUR, 0.2, 1, 0, NOW - DAY, True),
        (NOW + HOUR + 1, 0.5, 4, 2, NOW - 5 * DAY, True),
        (NOW + 400 * DAY, 0.5, 1, 0, NOW - 5 * DAY, False),
    )
    labels = [label for label, _ in DUE_BOUNDS]
    counted = {(place, labels[column]): int(n) for (place, column), n in np.ndenumerate(found.due) if n}
    expected = {(0, "now"): 1, (4, "now"): 1, (1, "in 1 hour"): 1, (2, "in 1 day"): 1, (2, "later"): 1}
    assert counted == expected
    assert (found.known, found.pages, found.comparisons, found.changes) == (5, 2, 3, 2)
    assert found.age_seconds == pytest.approx(6 * DAY)
    assert found.ages.tolist() == [0, 1, 0, 1, 0, 0, 0, 0, 0]
    assert found.ages_next.tolist() == [0, 0, 1, 1, 0, 0, 0, 0, 0]
