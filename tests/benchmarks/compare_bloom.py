"""A Bloom filter in front of the exact URL-seen test: what it saves and what it costs (docs/adr/0013).

Not part of ``make bench``: it needs ``pip install rbloom fastbloom-rs``, which the product does not use.
Run it with ``python -m tests.benchmarks.compare_bloom``.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fastbloom_rs
import numpy as np
import rbloom

from connectors.files import open_storage
from connectors.runs import Mask, RunReader, probe_new
from tests.benchmarks import bench_seen

FALSE_POSITIVES = 0.01


def mixed(k1: np.ndarray, k2: np.ndarray) -> list[int]:
    """Return one integer for each pair: the keys are random already, so a multiply is hash enough."""
    return ((k1 * np.uint64(0x9E3779B97F4A7C15)) ^ k2).astype(np.int64).tolist()


def known_keys(folder: Path) -> Iterator[list[int]]:
    """Yield the mixed keys of all runs, a few row groups at a time."""
    storage = open_storage(str(folder))
    for entry in bench_seen.make_runs(folder, 0):
        with RunReader(storage, entry) as run:
            for first in range(0, run.groups, 8):
                yield mixed(*run.keys(range(first, min(first + 8, run.groups))))


class RBloom:
    """rbloom, whose hash is a Python call a key."""

    def __init__(self, keys: int) -> None:
        self.filter = rbloom.Bloom(keys, FALSE_POSITIVES, hash_func=int)

    def add(self, keys: list[int]) -> None:
        self.filter.update(keys)

    def holds(self, keys: list[int]) -> Mask:
        return np.fromiter(map(self.filter.__contains__, keys), bool, len(keys))


class FastBloom:
    """fastbloom-rs, with batch calls on lists."""

    def __init__(self, keys: int) -> None:
        self.filter = fastbloom_rs.BloomFilter(keys, FALSE_POSITIVES)

    def add(self, keys: list[int]) -> None:
        self.filter.add_int_batch(keys)

    def holds(self, keys: list[int]) -> Mask:
        return np.array(self.filter.contains_int_batch(keys))


def cpu_seconds(work: Callable[[], Any]) -> float:
    """Return the median CPU time of five calls."""
    times = []
    for _ in range(5):
        begun = time.process_time()
        work()
        times.append(time.process_time() - begun)
    return round(statistics.median(times), 2)


def run(known: int = bench_seen.KNOWN, count: int = bench_seen.CANDIDATES) -> dict[str, dict[str, float]]:
    """Return CPU seconds of the exact test alone, and of filter and exact test, by share of known candidates."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    folder = Path(tempfile.gettempdir()) / "roundcrawl-bench-seen-100"
    bench_seen.prepare(folder, known, count)
    runs, storage = bench_seen.make_runs(folder, 0), open_storage(str(folder))
    figures: dict[str, dict[str, float]] = {}
    for kind in (RBloom, FastBloom):
        bloom = kind(known)
        for keys in known_keys(folder):
            bloom.add(keys)
        for share in (0.88, 0.5, 0.1):
            k1, k2 = bench_seen.make_candidates(known, count, share)
            maybe = bloom.holds(mixed(k1, k2))
            figures[f"{kind.__name__}, {share:.0%} known"] = {
                "exact alone": cpu_seconds(lambda k1=k1, k2=k2: probe_new(storage, runs, k1, k2)),
                "filter": cpu_seconds(lambda bloom=bloom, k1=k1, k2=k2: bloom.holds(mixed(k1, k2))),
                "exact after": cpu_seconds(
                    lambda k1=k1[maybe], k2=k2[maybe]: probe_new(storage, runs, k1, k2)
                ),
            }
    return figures


if __name__ == "__main__":
    for name, row in run().items():
        print(name, row)
