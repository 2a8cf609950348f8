"""The hosts of one partition's captures: when each was busy, and what failed there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.report.counts import LISTED

if TYPE_CHECKING:
    from transforms.report.captures import CaptureFigures

COMBINED_BATCHES = 32
PAGE_ERRORS = ("http_404", "http_410")
"""What makes a page gone without a fault of its host."""

_SUMS = ("planned", "asked", "fetched", "failed", "gone", "denied", "deferred", "millis")
_COMBINED = [
    *((name, "sum") for name in _SUMS),
    ("slowest", "max"),
    ("delay", "max"),
    ("first", "min"),
    ("last", "max"),
]


class HostRow(NamedTuple):
    """One host in one round. Instants are UTC epoch seconds; ``seconds`` lie between its first and last request.

    ``failed`` counts planned URLs that are to be retried or are gone for another reason than 404 or 410,
    ``denied`` those that robots.txt, or its absence, kept from being asked. ``reason`` is the commonest of the
    failures, ``rule`` the commonest line of robots.txt, or '' where there is none.
    """

    host: str
    seconds: float
    planned: int
    asked: int
    fetched: int
    failed: int
    gone: int
    denied: int
    deferred: int
    first_at: float
    last_at: float
    mean_millis: float
    most_millis: float
    delay_seconds: float | None
    reason: str = ""
    rule: str = ""


def best(rows: Iterable[HostRow], name: str) -> list[HostRow]:
    """Return the ten rows with the largest value above 0 in a field, ties by host name."""
    chosen = [row for row in rows if getattr(row, name) > 0]
    return sorted(chosen, key=lambda row: (-getattr(row, name), -row.deferred, row.host))[:LISTED]


class HostBook:
    """Sums up the rows of each host; no row is kept. ``close`` gives a partition's hosts to its figures."""

    def __init__(self) -> None:
        self._hosts: list[pa.Table] = []
        self._reasons: list[pa.Table] = []
        self._rules: list[pa.Table] = []

    def add(self, batch: pa.Table) -> None:
        """Take in a batch of captures rows."""
        host, kind = batch.column("url_host_name"), batch.column("kind")
        outcome, reason = batch.column("outcome"), pc.fill_null(batch.column("reason"), "")
        is_planned = pc.equal(kind, "planned")
        is_gone = pc.and_(is_planned, pc.equal(outcome, "gone"))
        of_page = pc.is_in(reason, pa.array(PAGE_ERRORS))
        retried = pc.and_(is_planned, pc.equal(outcome, "failed_retry"))
        failed = pc.or_(retried, pc.and_(is_gone, pc.invert(of_page)))
        denied = pc.and_(is_planned, pc.starts_with(reason, "robots_"))
        millis = batch.column("fetch_millis")
        marks = {
            "planned": is_planned,
            "asked": pc.is_valid(batch.column("started_at")),
            "fetched": pc.and_(pc.equal(outcome, "fetched"), pc.not_equal(kind, "robots")),
            "failed": failed,
            "gone": pc.and_(is_gone, of_page),
            "denied": denied,
            "deferred": pc.and_(is_planned, pc.equal(outcome, "deferred")),
        }
        columns = {name: mark.cast(pa.int64()) for name, mark in marks.items()}
        columns |= {"host": host, "millis": millis, "slowest": millis}
        columns["delay"] = batch.column("host_delay_seconds")
        columns["first"] = batch.column("started_at").cast(pa.int64())
        columns["last"] = batch.column("finished_at").cast(pa.int64())
        self._hosts.append(_by_host(pa.table(columns)))
        self._reasons.append(_pairs(host.filter(failed), reason.filter(failed)))
        is_rule = pc.and_(denied, pc.is_valid(batch.column("robots_rule")))
        self._rules.append(_pairs(host.filter(is_rule), batch.column("robots_rule").filter(is_rule)))
        if len(self._hosts) > COMBINED_BATCHES:
            self._combine()

    def _combine(self) -> None:
        self._hosts = [_by_host(pa.concat_tables(self._hosts))]
        self._reasons = [_summed(pa.concat_tables(self._reasons))]
        self._rules = [_summed(pa.concat_tables(self._rules))]

    def close(self, figures: CaptureFigures) -> None:
        """Add every host to the figures: moments of all, rows of the slowest, failing and denied ones."""
        if not self._hosts:
            return
        self._combine()
        hosts = self._hosts[0]
        if not hosts.num_rows:
            return
        spans = pc.fill_null(pc.subtract(hosts.column("last"), hosts.column("first")), 0)
        hosts = hosts.append_column("span", spans)
        asked = hosts.filter(pc.is_valid(hosts.column("first")))
        figures.hosts += hosts.num_rows
        figures.hosts_asked += asked.num_rows
        figures.arrivals.add(asked.column("first").to_numpy() / 1e6)
        figures.departures.add(asked.column("last").to_numpy() / 1e6)
        for name, key in (("slowest", "span"), ("failing", "failed"), ("denied", "denied")):
            rows = [self._row(row) for row in _largest(hosts, key)]
            field = "seconds" if key == "span" else key
            setattr(figures, name, best([*getattr(figures, name), *rows], field))

    def _row(self, row: dict[str, Any]) -> HostRow:
        host, asked = row["host"], row["asked"]
        return HostRow(
            host=host,
            seconds=row["span"] / 1e6,
            first_at=(row["first"] or 0) / 1e6,
            last_at=(row["last"] or 0) / 1e6,
            mean_millis=(row["millis"] or 0) / asked if asked else 0.0,
            most_millis=float(row["slowest"] or 0),
            delay_seconds=row["delay"],
            reason=_commonest(self._reasons[0], host),
            rule=_commonest(self._rules[0], host),
            **{name: row[name] for name in _SUMS if name != "millis"},
        )


def _by_host(table: pa.Table) -> pa.Table:
    """Return one row a host, under the names that came in."""
    grouped = table.group_by("host").aggregate(_COMBINED)
    names = ["host", *(name for name, _ in _COMBINED)]
    return pa.Table.from_arrays(
        [grouped.column("host"), *(grouped.column(f"{name}_{how}") for name, how in _COMBINED)], names=names
    )


def _pairs(hosts: Any, words: Any) -> pa.Table:
    ones = pa.array(np.ones(len(hosts), dtype=np.int64))
    return _summed(pa.table({"host": hosts, "word": words, "count": ones}))


def _summed(pairs: pa.Table) -> pa.Table:
    grouped = pairs.group_by(["host", "word"]).aggregate([("count", "sum")])
    return pa.table({name: grouped.column(found) for name, found in _PAIR_COLUMNS})


_PAIR_COLUMNS = (("host", "host"), ("word", "word"), ("count", "count_sum"))


def _largest(hosts: pa.Table, name: str) -> list[dict[str, Any]]:
    keys = [(name, "descending"), ("deferred", "descending"), ("host", "ascending")]
    chosen: list[dict[str, Any]] = hosts.take(pc.select_k_unstable(hosts, LISTED, keys)).to_pylist()
    return [row for row in chosen if row[name] > 0]


def _commonest(pairs: pa.Table, host: str) -> str:
    rows = pairs.filter(pc.equal(pairs.column("host"), host)).to_pylist()
    return min(rows, key=lambda row: (-row["count"], row["word"]), default={"word": ""})["word"]
