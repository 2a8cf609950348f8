"""The exact URL-seen test: which of these keys are in none of the runs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from connectors.files import Storage
from connectors.runs.keys import Keys, Mask, as_keys, is_sorted, pair_bounds, sort_order
from connectors.runs.reading import RunReader
from schemas.manifest import FileEntry

CACHED_GROUPS = 24


def probe_new(storage: Storage, runs: Sequence[FileEntry], k1: Keys, k2: Keys) -> Mask:
    """Return a mask of the candidates (k1, k2) that stand in no run, in the order given.

    Exact: no false positives, no false negatives. Repeated candidates get equal answers. Candidates in
    any order; sorted ones save a sort. Memory: about 60 bytes a candidate, and eight row groups.
    Cost: the larger runs go first, and what one of them knows is not looked up again. Raises DamagedRun.
    """
    k1, k2 = as_keys(k1), as_keys(k2)
    order = None if is_sorted(k1, k2) else sort_order(k1, k2)
    sorted1, sorted2 = (k1, k2) if order is None else (k1[order], k2[order])
    unknown = np.ones(len(k1), dtype=bool)
    for entry in sorted(runs, key=lambda run: (-run.rows, run.path)):
        left = np.flatnonzero(unknown)
        if len(left) == 0:
            break
        known = _known(storage, entry, sorted1[left], sorted2[left])
        unknown[left[known]] = False
    if order is None:
        return unknown
    answer = np.empty_like(unknown)
    answer[order] = unknown
    return answer


def _known(storage: Storage, entry: FileEntry, k1: Keys, k2: Keys) -> Mask:
    """Return which of the sorted candidates one run holds."""
    known = np.zeros(len(k1), dtype=bool)
    low = int(np.searchsorted(k1, np.uint64(entry.min_key), "left"))
    high = int(np.searchsorted(k1, np.uint64(entry.max_key), "right"))
    if low == high:
        return known
    with RunReader(storage, entry) as run:
        for block in run.blocks(run.touched(k1[low:high])):
            first = int(np.searchsorted(k1, run.starts[block[0]], "left"))
            last = int(np.searchsorted(k1, run.ends[block[-1]], "right"))
            if first == last:
                continue
            start, end = pair_bounds(*run.keys(block), k1[first:last], k2[first:last])
            known[first:last] |= end > start
    return known


class KeyProbe:
    """Point look-ups of single keys, for redirect targets: open runs and an LRU of decoded row groups.

    Holds at most 24 row groups (50 MB) and the footers of the runs it was asked about. Not thread-safe. Use
    as a context manager, or call ``close``.
    """

    def __init__(
        self, storage: Storage, runs: Sequence[FileEntry], cached_groups: int = CACHED_GROUPS
    ) -> None:
        self._storage = storage
        self._runs = sorted(runs, key=lambda run: (-run.rows, run.path))
        self._capacity = max(1, cached_groups)
        self._open: dict[str, RunReader] = {}
        self._cache: OrderedDict[tuple[str, int], tuple[Keys, Keys]] = OrderedDict()

    def __enter__(self) -> KeyProbe:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the runs and forget the row groups. Idempotent."""
        for run in self._open.values():
            run.close()
        self._open.clear()
        self._cache.clear()

    def contains(self, k1: int, k2: int) -> bool:
        """Whether any run holds the key (k1, k2). Raises DamagedRun."""
        return any(self._holds(entry, k1, k2) for entry in self._runs if entry.min_key <= k1 <= entry.max_key)

    def _holds(self, entry: FileEntry, k1: int, k2: int) -> bool:
        run = self._open.get(entry.path)
        if run is None:
            run = self._open[entry.path] = RunReader(self._storage, entry)
        wanted1, wanted2 = as_keys([k1]), as_keys([k2])
        for group in np.flatnonzero(run.touched(wanted1)).tolist():
            start, end = pair_bounds(*self._group(run, group), wanted1, wanted2)
            if end[0] > start[0]:
                return True
        return False

    def _group(self, run: RunReader, group: int) -> tuple[Keys, Keys]:
        name = (run.entry.path, group)
        keys = self._cache.get(name)
        if keys is None:
            keys = self._cache[name] = run.keys([group])
            if len(self._cache) > self._capacity:
                self._cache.popitem(last=False)
        self._cache.move_to_end(name)
        return keys


def contains_one(storage: Storage, runs: Sequence[FileEntry], k1: int, k2: int) -> bool:
    """Whether any run holds the key; for a single question. Raises DamagedRun."""
    with KeyProbe(storage, runs, cached_groups=1) as probe:
        return probe.contains(k1, k2)
