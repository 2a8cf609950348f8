"""Which pages of a bucket are alike, for many buckets at once, and which pages hang together.

Only finds who must be compared; ``crawler.resolve`` decides who stays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawler.neardup import SIGNATURE_BYTES, similarities
from crawler.ranks import Floats
from crawler.resolve import ANCHORS, HOT_ANCHORS, HOT_BUCKET

Keys = NDArray[np.uint64]
Index = NDArray[np.int64]
Mask = NDArray[np.bool_]

_PAIRS_AT_ONCE = 65_536
_ZERO = bytes(SIGNATURE_BYTES)


class Groups(NamedTuple):
    """Runs of equal neighbours in sorted keys: where each starts, its size, the group of each row."""

    starts: Index
    sizes: Index
    of_row: Index


def groups_of(sorted_keys: Keys) -> Groups:
    """Return the groups of equal keys."""
    if not len(sorted_keys):
        empty = np.zeros(0, dtype=np.int64)
        return Groups(empty, empty, empty)
    is_first = np.r_[True, sorted_keys[1:] != sorted_keys[:-1]]
    starts = np.flatnonzero(is_first)
    return Groups(starts, np.diff(np.r_[starts, len(sorted_keys)]), np.cumsum(is_first) - 1)


def pair_similarities(ones: NDArray[np.uint8], others: NDArray[np.uint8]) -> Floats:
    """Return the estimated Jaccard similarity of each row of one matrix of signatures to that of the other."""
    parts = [
        similarities(_ZERO, ones[start : start + _PAIRS_AT_ONCE] ^ others[start : start + _PAIRS_AT_ONCE])
        for start in range(0, len(ones), _PAIRS_AT_ONCE)
    ]
    return np.concatenate([np.zeros(0), *parts])


def linked_rows(groups: Groups, signatures: NDArray[np.uint8], threshold: float) -> Mask:
    """Return which rows are alike to another row of their bucket (estimated similarity >= threshold).

    The first row of a bucket is compared with all others, then the first of those that are alike to none so
    far, and so on: at most ANCHORS times, HOT_ANCHORS in a bucket of more than HOT_BUCKET rows. So no
    pair is missed up to that number of unlike rows, unless both are linked already. Linear in the rows.
    """
    linked = np.zeros(len(signatures), dtype=bool)
    rows = np.flatnonzero(groups.sizes[groups.of_row] > 1)
    is_open = np.zeros(len(signatures), dtype=bool)
    is_open[rows] = True
    tries = np.where(groups.sizes > HOT_BUCKET, HOT_ANCHORS, ANCHORS)
    for turn in range(ANCHORS):
        waiting = rows[is_open[rows]]
        if not len(waiting):
            break
        owners, first = np.unique(groups.of_row[waiting], return_index=True)
        owners, first = owners[turn < tries[owners]], first[turn < tries[owners]]
        anchor_of = np.full(len(groups.starts), -1, dtype=np.int64)
        anchor_of[owners] = waiting[first]
        rows = rows[anchor_of[groups.of_row[rows]] >= 0]
        anchors = anchor_of[groups.of_row[rows]]
        alike = (rows != anchors) & (pair_similarities(signatures[rows], signatures[anchors]) >= threshold)
        linked[rows[alike]] = True
        linked[anchors[alike]] = True
        is_open[rows[alike]] = False
        is_open[anchors] = False
    return linked


def components(one: Keys, other: Keys) -> tuple[Keys, Keys]:
    """Return (nodes, labels) of the graph with these edges: two nodes hang together if labels are equal.

    A label is the least node of its component; nodes ascend. Hooking and pointer jumping: the number of
    passes is logarithmic in practice, each is linear.
    """
    nodes, places = np.unique(np.concatenate([one, other]), return_inverse=True)
    left, right = places[: len(one)], places[len(one) :]
    parent = np.arange(len(nodes))
    while True:
        low, high = np.minimum(parent[left], parent[right]), np.maximum(parent[left], parent[right])
        apart = low != high
        if not apart.any():
            return nodes, nodes[parent]
        left, right = left[apart], right[apart]
        np.minimum.at(parent, high[apart], low[apart])
        while not np.array_equal(jumped := parent[parent], parent):
            parent = jumped
