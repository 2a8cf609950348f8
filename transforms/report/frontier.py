"""What the frontier calendar adds up to: when URLs are due, by priority, and how old the stored pages are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from transforms.report.captures import counts_of

COLUMNS = ("next_fetch_at", "priority", "status", "visits", "changes", "last_visit_at", "in_pages")
HOUR, DAY = 3_600.0, 86_400.0
DUE_BOUNDS = (
    ("now", 0.0),
    ("in 1 hour", HOUR),
    ("in 1 day", DAY),
    ("in 1 week", 7 * DAY),
    ("in 30 days", 30 * DAY),
    ("in 90 days", 90 * DAY),
    ("later", np.inf),
)
"""Columns of the frontier: the longest wait, in seconds, that each takes in."""
PRIORITY_BOUNDS = (
    ("0 – 0.2", 0.2),
    ("0.2 – 0.4", 0.4),
    ("0.4 – 0.6", 0.6),
    ("0.6 – 0.8", 0.8),
    ("0.8 – 1", np.inf),
)
AGE_BOUNDS = (
    ("1 hour", HOUR),
    ("1 day", DAY),
    ("3 days", 3 * DAY),
    ("1 week", 7 * DAY),
    ("2 weeks", 14 * DAY),
    ("30 days", 30 * DAY),
    ("60 days", 60 * DAY),
    ("90 days", 90 * DAY),
    ("more", np.inf),
)


@dataclass
class FrontierFigures:
    """Counts of known URLs, as of one instant. Those of any parts of the calendar merge to those of the whole.

    ``due`` counts URLs by priority class (rows) and wait (columns). ``ages`` and ``ages_next`` count the pages
    that an index holds by the time since their last visit, now and when they are next due. ``comparisons``
    are visits to a page seen before, ``changes`` those of them that found another text.
    """

    known: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    due: NDArray[np.int64] = field(
        default_factory=lambda: np.zeros((len(PRIORITY_BOUNDS), len(DUE_BOUNDS)), dtype=np.int64)
    )
    ages: NDArray[np.int64] = field(default_factory=lambda: np.zeros(len(AGE_BOUNDS), dtype=np.int64))
    ages_next: NDArray[np.int64] = field(default_factory=lambda: np.zeros(len(AGE_BOUNDS), dtype=np.int64))
    age_seconds: float = 0.0
    pages: int = 0
    comparisons: int = 0
    changes: int = 0

    def merge(self, other: FrontierFigures) -> None:
        """Add the figures of other rows."""
        self.known += other.known
        self.statuses.update(other.statuses)
        self.due = self.due + other.due
        self.ages = self.ages + other.ages
        self.ages_next = self.ages_next + other.ages_next
        self.age_seconds += other.age_seconds
        self.pages += other.pages
        self.comparisons += other.comparisons
        self.changes += other.changes


def frontier_figures(batches: Iterable[pa.Table], as_of: float) -> FrontierFigures:
    """Return the figures of calendar rows, given the columns of `COLUMNS`, at ``as_of`` (UTC epoch seconds)."""
    figures = FrontierFigures()
    for batch in batches:
        _add(figures, batch, as_of)
    return figures


def _add(figures: FrontierFigures, batch: pa.Table, as_of: float) -> None:
    waits = batch.column("next_fetch_at").to_numpy() - as_of
    priority = _classes(batch.column("priority").to_numpy(), PRIORITY_BOUNDS, "right")
    column = _classes(waits, DUE_BOUNDS, "left")
    cells = np.bincount(priority * len(DUE_BOUNDS) + column, minlength=figures.due.size)
    figures.known += batch.num_rows
    figures.due += cells.reshape(figures.due.shape)
    figures.statuses.update(counts_of(batch.column("status")))
    visits, changes = batch.column("visits").to_numpy(), batch.column("changes").to_numpy()
    figures.comparisons += int(np.maximum(visits - 1, 0).sum())
    figures.changes += int(np.minimum(changes, np.maximum(visits - 1, 0)).sum())
    _add_ages(figures, batch.filter(batch.column("in_pages")), as_of)


def _add_ages(figures: FrontierFigures, pages: pa.Table, as_of: float) -> None:
    visited_at = pages.column("last_visit_at").drop_null()
    next_at = pages.filter(pages.column("last_visit_at").is_valid()).column("next_fetch_at").to_numpy()
    last_at = visited_at.to_numpy()
    ages = np.maximum(0.0, as_of - last_at)
    figures.pages += len(ages)
    figures.age_seconds += float(ages.sum())
    figures.ages += _counted(ages)
    figures.ages_next += _counted(np.maximum(ages, next_at - last_at))


def _classes(
    values: NDArray[np.float64], bounds: tuple[tuple[str, float], ...], side: str
) -> NDArray[np.int64]:
    limits = [limit for _, limit in bounds[:-1]]
    return np.searchsorted(limits, values, side)  # type: ignore[call-overload, no-any-return]


def _counted(ages: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.bincount(_classes(ages, AGE_BOUNDS, "left"), minlength=len(AGE_BOUNDS))
