"""Counts that add up: what parts of a round's tables contribute to a figure, in any order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

TENTHS = 10
MOST_NAMES = 10_000
OTHERS = "others"
LISTED = 10


class Moments(Counter[int]):
    """Events by the tenth of a second in which they happened, counted from the epoch."""

    def add(self, instants: NDArray[np.float64]) -> None:
        """Count instants (UTC epoch seconds); those that are not a number are left out."""
        known = instants[np.isfinite(instants)]
        moments, counts = np.unique(np.floor(known * TENTHS).astype(np.int64), return_counts=True)
        self.update(dict(zip(moments.tolist(), counts.tolist(), strict=True)))


@dataclass
class Histogram:
    """Values by fixed bounds: ``counts[i]`` lie in [edges[i], edges[i + 1]); what lies outside joins the ends."""

    edges: tuple[float, ...]
    counts: NDArray[np.int64]
    values: int = 0
    total: float = 0.0
    largest: float = 0.0

    @classmethod
    def over(cls, edges: Sequence[float]) -> Self:
        """Return an empty histogram between these ascending bounds."""
        return cls(tuple(edges), np.zeros(len(edges) - 1, dtype=np.int64))

    def add(self, values: NDArray[np.float64]) -> None:
        """Count values; those that are not a number are left out."""
        known = values[np.isfinite(values)]
        if not len(known):
            return
        places = np.clip(np.searchsorted(self.edges, known, "right") - 1, 0, len(self.counts) - 1)
        self.counts += np.bincount(places, minlength=len(self.counts))
        self.values += len(known)
        self.total += float(known.sum())
        self.largest = max(self.largest, float(known.max()))

    def merge(self, other: Histogram) -> None:
        """Add what another histogram over the same bounds has counted."""
        self.counts = self.counts + other.counts
        self.values += other.values
        self.total += other.total
        self.largest = max(self.largest, other.largest)

    @property
    def mean(self) -> float:
        """The mean of the values, 0 without any."""
        return self.total / self.values if self.values else 0.0

    def quantile(self, share: float) -> float:
        """Return the value below which this share lies, interpolated within its bounds; 0 without values."""
        if not self.values:
            return 0.0
        reached = np.concatenate([[0], np.cumsum(self.counts)])
        place = int(np.searchsorted(reached, share * self.values, "left"))
        place = min(max(place, 1), len(self.counts))
        inside = (share * self.values - reached[place - 1]) / max(1, self.counts[place - 1])
        low, high = self.edges[place - 1], min(self.edges[place], self.largest)
        return float(min(low + inside * max(0.0, high - low), self.largest))


def bounded(counts: Counter[Any], most: int = MOST_NAMES) -> Counter[Any]:
    """Return the counts with all but the ``most`` largest summed up under `OTHERS`.

    For names that servers choose: however many there are, memory has a bound, and exact is what is shown.
    """
    if len(counts) <= most:
        return counts
    ordered = largest(counts, len(counts))
    kept = Counter(dict(ordered[: most - 1]))
    kept[OTHERS] += sum(count for _, count in ordered[most - 1 :])
    return kept


def largest(counts: Counter[Any], most: int = LISTED) -> list[tuple[Any, int]]:
    """Return the names with the largest counts and these, the largest first, ties by name."""
    return sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))[:most]
