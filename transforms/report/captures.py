"""What a round's captures add up to: pace, hosts, content types, depths, sizes. Imports no Beam."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from transforms.report.counts import Histogram, Moments, bounded
from transforms.report.hosts import HostBook, HostRow, best

COLUMNS = (
    "url_host_name",
    "kind",
    "outcome",
    "reason",
    "depth",
    "subset",
    "started_at",
    "finished_at",
    "fetch_millis",
    "host_delay_seconds",
    "robots_rule",
    "content_mime_type",
    "content_mime_detected",
    "content_truncated",
    "warc_record_length",
)
DEEPEST = 30
SIZE_EDGES = tuple(float(1 << power) for power in range(8, 25))
MILLIS_EDGES = (1.0, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 120_000)
UNKNOWN_TYPE = "not recognised"


@dataclass
class CaptureFigures:
    """Counts of captures rows. Those of parts of a round, by partition, merge to those of the round.

    ``begun`` counts requests by their start; ``requests``, ``pages`` and ``done`` (planned URLs) what ended in
    each tenth of a second; ``arrivals`` and ``departures`` the first start and the last end of each host.
    ``types`` maps a detected media type to its captures, ``type_bytes`` to their stored bytes, ``mislabelled``
    to those whose server says otherwise. ``sizes`` are of records as stored, bytes; ``millis`` of downloads.
    """

    kinds: Counter[str] = field(default_factory=Counter)
    begun: Moments = field(default_factory=Moments)
    requests: Moments = field(default_factory=Moments)
    pages: Moments = field(default_factory=Moments)
    done: Moments = field(default_factory=Moments)
    arrivals: Moments = field(default_factory=Moments)
    departures: Moments = field(default_factory=Moments)
    hosts: int = 0
    hosts_asked: int = 0
    slowest: list[HostRow] = field(default_factory=list)
    failing: list[HostRow] = field(default_factory=list)
    denied: list[HostRow] = field(default_factory=list)
    types: Counter[str] = field(default_factory=Counter)
    type_bytes: Counter[str] = field(default_factory=Counter)
    mislabelled: Counter[str] = field(default_factory=Counter)
    depths: Counter[int] = field(default_factory=Counter)
    truncated: Counter[str] = field(default_factory=Counter)
    sizes: Histogram = field(default_factory=lambda: Histogram.over(SIZE_EDGES))
    millis: Histogram = field(default_factory=lambda: Histogram.over(MILLIS_EDGES))

    def merge(self, other: CaptureFigures) -> None:
        """Add the figures of another partition; no host may be in both."""
        for name in ("kinds", "begun", "requests", "pages", "done", "arrivals", "departures"):
            getattr(self, name).update(getattr(other, name))
        for name in ("types", "type_bytes", "mislabelled"):
            getattr(self, name).update(getattr(other, name))
            setattr(self, name, bounded(getattr(self, name)))
        self.depths.update(other.depths)
        self.truncated.update(other.truncated)
        self.hosts += other.hosts
        self.hosts_asked += other.hosts_asked
        self.slowest = best([*self.slowest, *other.slowest], "seconds")
        self.failing = best([*self.failing, *other.failing], "failed")
        self.denied = best([*self.denied, *other.denied], "denied")
        self.sizes.merge(other.sizes)
        self.millis.merge(other.millis)


def partition_figures(batches: Iterable[pa.Table]) -> CaptureFigures:
    """Return the figures of all captures rows of one partition, given the columns of `COLUMNS`."""
    figures, hosts = CaptureFigures(), HostBook()
    for batch in batches:
        _add(figures, batch)
        hosts.add(batch)
    hosts.close(figures)
    return figures


def _add(figures: CaptureFigures, batch: pa.Table) -> None:
    kind, outcome = batch.column("kind"), batch.column("outcome")
    figures.kinds.update(counts_of(kind))
    is_planned, is_robots = pc.equal(kind, "planned"), pc.equal(kind, "robots")
    finished = batch.column("finished_at")
    is_page = pc.and_(pc.equal(outcome, "fetched"), pc.invert(is_robots))
    figures.begun.add(seconds_of(batch.column("started_at")))
    figures.requests.add(seconds_of(finished))
    figures.pages.add(seconds_of(finished.filter(is_page)))
    figures.done.add(seconds_of(finished.filter(is_planned)))
    figures.depths.update(counts_of(pc.min_element_wise(batch.column("depth").filter(is_planned), DEEPEST)))
    figures.truncated.update(counts_of(batch.column("content_truncated").drop_null()))
    figures.millis.add(floats_of(batch.column("fetch_millis")))
    _add_content(
        figures, batch.filter(pc.and_(pc.equal(batch.column("subset"), "warc"), pc.invert(is_robots)))
    )


def _add_content(figures: CaptureFigures, stored: pa.Table) -> None:
    """Count the answers of status 200: what they are, what their servers call them, how large they are."""
    figures.sizes.add(floats_of(stored.column("warc_record_length")))
    columns = {
        "detected": pc.fill_null(stored.column("content_mime_detected"), UNKNOWN_TYPE),
        "stated": pc.fill_null(stored.column("content_mime_type"), ""),
        "bytes": stored.column("warc_record_length"),
    }
    grouped = (
        pa.table(columns).group_by(["detected", "stated"]).aggregate([("bytes", "sum"), ("bytes", "count")])
    )
    for row in grouped.to_pylist():
        name = row["detected"]
        figures.types[name] += row["bytes_count"]
        figures.type_bytes[name] += row["bytes_sum"] or 0
        if row["stated"] not in ("", name):
            figures.mislabelled[name] += row["bytes_count"]


def counts_of(column: Any) -> dict[Any, int]:
    """Return how often each value stands in a column."""
    counted = pc.value_counts(column)
    return dict(zip(counted.field("values").to_pylist(), counted.field("counts").to_pylist(), strict=True))


def seconds_of(column: Any) -> NDArray[np.float64]:
    """Return the instants of a timestamp column in UTC epoch seconds, nan for null."""
    return floats_of(column.cast(pa.int64())) / 1e6


def floats_of(column: Any) -> NDArray[np.float64]:
    """Return a column of numbers as floats, nan for null."""
    values: NDArray[np.float64] = column.cast(pa.float64()).to_numpy()
    return values
