"""The content index as runs: small, and bounded where a bucket is crowded."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from connectors import runs
from schemas.manifest import FileEntry
from schemas.page import Sketch
from tests.fakes.gate_rounds import Doc, GateCrawl
from transforms.gate import buckets as gate_buckets
from transforms.gate.index import BANDS, SKETCHES, tombstone_rows


def stored(crawl: GateCrawl, table: runs.RunTable) -> list[dict]:
    """Return the live rows of a table, over all partitions."""
    by_partition: dict[int, list[FileEntry]] = {}
    for entry in crawl.files:
        if entry.table == table.name:
            by_partition.setdefault(entry.partition, []).append(entry)
    return [
        row
        for entries in by_partition.values()
        for rows in runs.scan(crawl.folder.storage, table, entries)
        for row in rows.to_pylist()
    ]


def unlike(number: int, rng: np.random.Generator, bands: tuple[int, ...] = ()) -> Doc:
    """Return a page of a text of its own, with its own bands or given ones."""
    own = tuple(rng.integers(0, 2**64, 16, np.uint64).tolist())
    sketch = Sketch(rng.bytes(16), 300, rng.bytes(64), bands or own)
    return Doc(
        f"https://www.site{number // 20}.example/articles/2026/{number}-a-headline", "-", 0, None, sketch
    )


def test_a_page_costs_less_than_200_bytes(tmp_path) -> None:
    rng = np.random.default_rng(1)
    crawl = GateCrawl(tmp_path, partitions=1)
    assert crawl.run_round([unlike(number, rng) for number in range(5_000)]) == []
    assert len(stored(crawl, BANDS)) == 5_000 * 16
    assert sum(entry.bytes for entry in crawl.files) < 200 * 5_000


@pytest.mark.parametrize("rounds", [1, 4])
def test_a_crowded_bucket_takes_no_more_and_is_tried_at_few_anchors(tmp_path, monkeypatch, rounds) -> None:
    monkeypatch.setattr(gate_buckets, "HOT_BUCKET", 5)
    rng = np.random.default_rng(1)
    shared = tuple(range(7, 1 << 64, 1 << 60))
    docs = [unlike(number, rng, shared) for number in range(12)]
    crawl = GateCrawl(tmp_path)
    for number in range(rounds):
        assert crawl.run_round(docs[number::rounds]) == []
    counts = Counter(row["k1"] for row in stored(crawl, BANDS))
    assert len(counts) == 16 and set(counts.values()) == {5}
    assert len(stored(crawl, SKETCHES)) == 12


def test_copies_without_number_leave_one(tmp_path) -> None:
    rng = np.random.default_rng(1)
    first = unlike(0, rng)
    crawl = GateCrawl(tmp_path)
    copies = [first._replace(url=f"http://copy{number}.example/") for number in range(3_000)]
    assert len(crawl.run_round([first, *copies])) == 3_000
    assert len(stored(crawl, BANDS)) == 16 and len(stored(crawl, SKETCHES)) == 1
    again = Counter(verdict.kind for verdict in crawl.run_round(copies[:100]))
    assert again == {"same": 1, "exact": 99}


def test_pages_that_left_are_taken_out(tmp_path) -> None:
    rng = np.random.default_rng(1)
    docs = [unlike(number, rng) for number in range(6)]
    crawl = GateCrawl(tmp_path)
    crawl.run_round(docs)
    crawl.run_round([doc._replace(text=None) for doc in docs[:4]])
    assert {row["url"] for row in stored(crawl, SKETCHES)} == {doc.url for doc in docs[4:]}
    assert tombstone_rows([], 64).num_rows == 0
