"""Runs and calendar on an object store: the same answers, in few requests."""

from __future__ import annotations

import numpy as np
import pytest

from connectors import calendar
from connectors.files import StorageError
from connectors.runs import KeyProbe, RunTable, merge_runs, probe_new, write_run
from schemas.manifest import FileEntry
from schemas.state import UrlState
from tests.fakes.memory_store import MemoryStorage

SEEN = RunTable("seen")
ROWS = 20 * 131_072


@pytest.fixture(scope="module")
def store() -> tuple[MemoryStorage, FileEntry, list[str]]:
    """Return a store with one run of twenty row groups (21 MB), and the list of requests made of it."""
    requests: list[str] = []
    storage = MemoryStorage(hooks=[lambda name, done: None if done else requests.append(name)])
    numbers = np.arange(ROWS, dtype=np.uint64)
    entry = write_run(
        storage, SEEN, 0, 1, {"k1": numbers // np.uint64(64), "k2": numbers * np.uint64(3)}, token="t"
    )
    return storage, entry, requests


Store = tuple[MemoryStorage, FileEntry, list[str]]


def test_a_stream_takes_one_request_for_several_row_groups(store: Store) -> None:
    storage, entry, requests = store
    requests.clear()
    wanted = np.arange(0, ROWS, 1_000, dtype=np.uint64)
    fresh = probe_new(
        storage, [entry], wanted // np.uint64(64), wanted * np.uint64(3) + (wanted % np.uint64(2_000))
    )
    assert fresh.tolist() == [number % 2_000 != 0 for number in wanted.tolist()]
    assert len(requests) <= 6


def test_a_point_look_up_reads_the_footer_and_one_row_group(store: Store) -> None:
    storage, entry, requests = store
    requests.clear()
    with KeyProbe(storage, [entry]) as probe:
        assert probe.contains(1_000, 64_000 * 3)
        assert not probe.contains(1_000, 64_000 * 3 + 1)
        assert probe.contains(1_001, 64_064 * 3)
    assert len(requests) <= 3


def test_a_small_file_takes_one_request(store: Store) -> None:
    storage, _, requests = store
    rows = [
        UrlState(f"https://h.example/{n}", 1, n, "unfetched", 0.0, 0, 0.5, None, 1, 0.0) for n in range(300)
    ]
    entries = calendar.write_slots(storage, 0, 1, rows, 0.0, "t")
    requests.clear()
    assert calendar.read(storage, entries, 0.0).due.num_rows == 300
    assert len(requests) <= 2


def test_runs_merge_on_a_store(store: Store) -> None:
    storage, _, _ = store
    parts = [write_run(storage, SEEN, 1, n, {"k1": [n, 5], "k2": [1, 1]}, token="t") for n in (1, 2, 3)]
    merged = merge_runs(storage, SEEN, parts, 1, 3, level=1, token="m")
    assert merged is not None
    assert merged.rows == 4


def test_a_store_that_keeps_failing_is_not_called_damage(store: Store) -> None:
    storage, entry, _ = store
    asked = iter(range(10**9))

    def fail(name: str, done: bool) -> None:
        if name == "get" and not done and next(asked) > 0:
            raise StorageError("mem://bucket: 503")

    failing = MemoryStorage(objects=storage.objects, hooks=[fail])
    with pytest.raises(StorageError, match="503"):
        probe_new(failing, [entry], np.array([70], np.uint64), np.array([1], np.uint64))
