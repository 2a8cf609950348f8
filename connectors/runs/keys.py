"""Arithmetic on sorted pairs of unsigned 64-bit keys, in numpy: no Python loop over rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Keys = npt.NDArray[np.uint64]
Index = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def as_keys(values: Any) -> Keys:
    """Return a contiguous uint64 array of the values. Raises OverflowError for a value out of range."""
    return np.ascontiguousarray(values, dtype=np.uint64)


def is_sorted(k1: Keys, k2: Keys, strictly: bool = False) -> bool:
    """Whether the pairs ascend; ``strictly`` also forbids equal neighbours."""
    if len(k1) < 2:
        return True
    second = k2[:-1] < k2[1:] if strictly else k2[:-1] <= k2[1:]
    return bool(np.all((k1[:-1] < k1[1:]) | ((k1[:-1] == k1[1:]) & second)))


def sort_order(k1: Keys, k2: Keys) -> Index:
    """Return the positions that sort the pairs; equal pairs keep their order.

    Fast for a concatenation of sorted runs. One 64-bit number stands for a pair: the rank of its k1 and as
    many leading bits of k2 as fit. Where those bits do not tell two keys apart, two plain sorts do.
    """
    by_first = np.argsort(k1, kind="stable")
    ordered = k1[by_first]
    rank = np.zeros(len(k1), dtype=np.uint64)
    rank[by_first[1:]] = np.cumsum(ordered[1:] != ordered[:-1], dtype=np.uint64)
    bits = int(rank.max(initial=0)).bit_length()
    joined = (rank << np.uint64(64 - bits)) | (k2 >> np.uint64(bits)) if bits else k2
    order = np.argsort(joined, kind="stable")
    if not is_sorted(k1[order], k2[order]):
        by_second = np.argsort(k2, kind="stable")
        order = by_second[np.argsort(k1[by_second], kind="stable")]
    return order.astype(np.int64, copy=False)


def first_of_each(k1: Keys, k2: Keys) -> Mask:
    """Return a mask of the first of each group of equal neighbours in sorted pairs."""
    mask = np.ones(len(k1), dtype=bool)
    np.logical_or(k1[1:] != k1[:-1], k2[1:] != k2[:-1], out=mask[1:])
    return mask


def last_of_each(k1: Keys, k2: Keys) -> Mask:
    """Return a mask of the last of each group of equal neighbours in sorted pairs."""
    mask = np.ones(len(k1), dtype=bool)
    np.logical_or(k1[1:] != k1[:-1], k2[1:] != k2[:-1], out=mask[:-1])
    return mask


def pair_bounds(hay1: Keys, hay2: Keys, k1: Keys, k2: Keys) -> tuple[Index, Index]:
    """Return for each wanted pair the half-open range of its equals in the sorted pairs ``hay1, hay2``.

    The range is empty for a pair that is not there. Fast when the wanted pairs ascend too. The search
    halves the range of equal k1 for all pairs at once: log2(longest such range) passes.
    """
    low = np.searchsorted(hay1, k1, "left")
    high = np.searchsorted(hay1, k1, "right")
    if len(hay1) == 0 or len(k1) == 0:
        return low, high
    first = _advance(hay2, k2, low, high, through=False)
    last = first + ((first < high) & (hay2[np.minimum(first, len(hay2) - 1)] == k2))
    repeated = (last > first) & (last < high) & (hay2[np.minimum(last, len(hay2) - 1)] == k2)
    if repeated.any():
        last[repeated] = _advance(hay2, k2[repeated], last[repeated], high[repeated], through=True)
    return first, last


def count_through(hay1: Keys, hay2: Keys, k1: int, k2: int) -> int:
    """Return how many of the sorted pairs are <= (k1, k2)."""
    low = int(np.searchsorted(hay1, np.uint64(k1), "left"))
    high = int(np.searchsorted(hay1, np.uint64(k1), "right"))
    return low + int(np.searchsorted(hay2[low:high], np.uint64(k2), "right"))


def expand(first: Index, last: Index) -> tuple[Index, Index]:
    """Return (owner, position) for every position of every half-open range, in order of the ranges."""
    lengths = last - first
    owner = np.repeat(np.arange(len(first)), lengths)
    offsets = np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return owner, first[owner] + offsets


def _advance(hay2: Keys, k2: Keys, low: Index, high: Index, through: bool) -> Index:
    """Return for each key the first position in [low, high) that is not below it (``through``: above it)."""
    found = low.copy()
    step = 1 << int((high - low).max()).bit_length() >> 1
    while step:
        ahead = found + step
        seen = hay2[np.minimum(ahead, high) - 1]
        below = seen <= k2 if through else seen < k2
        found = np.where((ahead <= high) & below, ahead, found)
        step >>= 1
    return found
