"""Who must be compared: no pair of alike pages in a bucket is missed, and clusters hold together."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from crawler.alike import components, groups_of, linked_rows, pair_similarities
from crawler.neardup import similarity
from crawler.resolve import ANCHORS, HOT_ANCHORS, HOT_BUCKET

EDGES = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=60)


def walk(count: int, steps: int, rng: np.random.Generator) -> np.ndarray:
    """Return signatures that drift: each differs from the one before in some of its values."""
    row = rng.integers(0, 256, 64, dtype=np.uint8)
    rows = []
    for _ in range(count):
        row = row.copy()
        row[rng.integers(0, 64, rng.integers(0, steps))] ^= 0x10
        rows.append(row)
    return np.array(rows)


@given(seed=st.integers(0, 10**6), sizes=st.lists(st.integers(1, 12), min_size=1, max_size=6))
def test_every_row_that_is_alike_to_one_of_its_bucket_is_linked(seed, sizes) -> None:
    rng = np.random.default_rng(seed)
    bucket = np.repeat(np.arange(len(sizes), dtype=np.uint64), sizes)
    signatures = walk(len(bucket), 30, rng)
    linked = linked_rows(groups_of(bucket), signatures, 0.8)
    for row in range(len(bucket)):
        others = [n for n in range(len(bucket)) if n != row and bucket[n] == bucket[row]]
        alike = any(similarity(signatures[row].tobytes(), signatures[n].tobytes()) >= 0.8 for n in others)
        assert linked[row] == alike


def test_no_rows() -> None:
    empty = np.zeros(0, dtype=np.uint64)
    assert linked_rows(groups_of(empty), np.zeros((0, 64), np.uint8), 0.8).tolist() == []
    assert [part.tolist() for part in components(empty, empty)] == [[], []]


def unlike(count: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 256, (count, 64), dtype=np.uint8)


def test_so_many_unlike_anchors_are_tried_and_no_more() -> None:
    signatures = unlike(ANCHORS + 4)
    signatures[-3] = signatures[ANCHORS - 1]
    signatures[-1] = signatures[-2]
    linked = linked_rows(groups_of(np.zeros(len(signatures), np.uint64)), signatures, 0.8)
    assert np.flatnonzero(linked).tolist() == [ANCHORS - 1, ANCHORS + 1]


def test_a_hot_bucket_has_few_anchors() -> None:
    signatures = unlike(HOT_BUCKET + 1)
    signatures[-1], signatures[-2] = signatures[HOT_ANCHORS - 1], signatures[HOT_ANCHORS]
    linked = linked_rows(groups_of(np.zeros(len(signatures), np.uint64)), signatures, 0.8)
    assert np.flatnonzero(linked).tolist() == [HOT_ANCHORS - 1, HOT_BUCKET]


@given(seed=st.integers(0, 10**6))
def test_pairs_are_compared_row_by_row(seed) -> None:
    rows = walk(20, 60, np.random.default_rng(seed))
    found = pair_similarities(rows[:10], rows[10:])
    expected = [
        similarity(one.tobytes(), other.tobytes()) for one, other in zip(rows[:10], rows[10:], strict=True)
    ]
    assert found.tolist() == expected


@given(edges=EDGES)
def test_components_are_those_of_the_graph(edges) -> None:
    one, other = (np.array([edge[side] for edge in edges], dtype=np.uint64) for side in (0, 1))
    nodes, labels = components(one, other)
    parent = {node: node for edge in edges for node in edge}

    def root(node: int) -> int:
        while parent[node] != node:
            node = parent[node]
        return node

    for left, right in edges:
        low, high = sorted((root(left), root(right)))
        parent[high] = low
    assert nodes.tolist() == sorted(parent)
    assert labels.tolist() == [root(node) for node in nodes.tolist()]


def test_a_long_chain_is_one_component() -> None:
    nodes = np.random.default_rng(1).permutation(20_000).astype(np.uint64)
    assert np.unique(components(nodes[:-1], nodes[1:])[1]).tolist() == [0]
