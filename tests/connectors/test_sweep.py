"""The sweep: what a manifest names stays, and litter goes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors import layout
from connectors.rounds import CrawlFolder
from connectors.sweep import SCRATCH_SECONDS, sweep
from schemas.manifest import FORMAT_VERSION, FileEntry, Manifest
from tests.fakes.clock import FakeClock
from tests.fakes.memory_store import MemoryStorage


def entry(path: str, staged: str = "") -> FileEntry:
    return FileEntry(path, staged, "t", 0, 0, 1, 1, "")


def commit(folder: CrawlFolder, number: int, entries: list[FileEntry], publish: bool = True) -> None:
    parent = number - 1 or None
    manifest = Manifest(
        FORMAT_VERSION, number, f"r{number}", parent, "", "", "", {}, 0, {}, {}, {}, [], entries
    )
    for one in entries:
        path = one.staged_path or one.path
        if not folder.storage.exists(path):
            folder.storage.write_new(path, b"x")
    folder.commit_manifest(manifest)
    if publish:
        folder.publish_staged(manifest)


def state(number: int, name: str) -> str:
    return f"state/seen/p=0001/r{number:06d}-l0-{name}.parquet"


@pytest.fixture
def folder() -> CrawlFolder:
    return CrawlFolder(MemoryStorage())


def test_replaced_state_goes_after_three_rounds(folder: CrawlFolder) -> None:
    for number in range(1, 7):
        commit(folder, number, [entry(state(number, "a")), entry(state(1, "forever"))])
        swept = sweep(folder)
        assert swept == ([state(number - 3, "a")] if number > 3 else [])
    left = {info.path for info in folder.storage.list(layout.STATE)}
    assert left == {state(1, "forever"), *(state(number, "a") for number in (4, 5, 6))}


def test_litter_of_dead_attempts_goes(folder: CrawlFolder) -> None:
    litter = [
        state(1, "dead"),
        "warc/000001/warc/dead.warc.gz",
        layout.staged(1, "tables/pages/round=000001/dead.parquet"),
    ]
    for path in litter:
        folder.storage.write_new(path, b"x")
    alive = [entry(state(1, "a")), entry("warc/000001/warc/a.warc.gz")]
    staged = entry("tables/pages/round=000001/a.parquet", layout.staged(1, "tables/pages/round=000001/a"))
    commit(folder, 1, [*alive, staged], publish=False)
    assert sorted(sweep(folder)) == sorted(litter)
    assert {info.path for info in folder.storage.list()} == {
        layout.manifest_path(1),
        staged.staged_path,
        *(one.path for one in alive),
    }


def test_old_work_goes_and_the_record_stays(folder: CrawlFolder) -> None:
    marks = ["journal/shard-0001/started-aa.json", "journal/shard-0001/delay-bb-900.json"]
    work = ["work/a.parquet", "plan/due.parquet", "shards/urls.parquet", "stop-aa.json", *marks]
    record = ["plan.json", "journal/shard-0001/000001.json", "manifest.json"]
    for number in (1, 2, 3, 4):
        for name in [*work, *record[:2]]:
            folder.storage.write_new(f"{layout.round_folder(number)}{name}", b"x")
        folder.storage.write_new(f"{layout.shard_lease(number, 1)}.json", b"x")
        commit(folder, number, [])
        swept = sweep(folder)
        assert bool(swept) == (number == 4)
    assert {info.path for info in folder.storage.list(layout.round_folder(1))} == {
        f"{layout.round_folder(1)}{name}" for name in record
    }
    assert folder.storage.list(layout.lease_folder(1)) == []
    assert len(folder.storage.list(layout.round_folder(2))) == len(work) + len(record)
    assert sweep(folder) == []


def test_nothing_goes_while_a_round_is_unfinished(folder: CrawlFolder) -> None:
    folder.storage.write_new(state(1, "dead"), b"x")
    commit(folder, 1, [])
    folder.storage.write_new(layout.plan_path(2), b"x")
    assert sweep(folder) == []


def test_files_of_a_round_that_is_being_planned_stay(folder: CrawlFolder) -> None:
    commit(folder, 1, [])
    for path in (state(2, "policy"), "rounds/000002/plan/due.parquet", "warc/000002/warc/a.warc.gz"):
        folder.storage.write_new(path, b"x")
    assert sweep(folder) == []


def test_who_lost_the_lease_deletes_nothing(folder: CrawlFolder) -> None:
    folder.storage.write_new(state(1, "dead"), b"x")
    commit(folder, 1, [])
    assert sweep(folder, holds=lambda: False) == []
    assert folder.storage.exists(state(1, "dead"))


def test_a_commit_during_the_sweep_is_safe(folder: CrawlFolder) -> None:
    storage = folder.storage
    assert isinstance(storage, MemoryStorage)
    for number in range(1, 4):
        commit(folder, number, [entry(state(1, "shared"))])
    listings = 0

    def racing(request: str, done: bool) -> None:
        nonlocal listings
        listings += request == "list"
        if listings == 3:
            storage.hooks.clear()
            commit(folder, 4, [entry(state(4, "new")), entry(state(1, "shared"))])
            commit(folder, 5, [entry(state(5, "new")), entry(state(1, "shared"))])

    storage.hooks.append(racing)
    sweep(folder)
    assert not storage.hooks
    for path in (state(1, "shared"), state(4, "new"), state(5, "new")):
        assert folder.storage.exists(path)


def test_old_scratch_files_go(tmp_path: Path) -> None:
    folder = CrawlFolder.at(str(tmp_path))
    scratch = Path(folder.storage.scratch_path("x.parquet"))
    scratch.write_bytes(b"half")
    written = scratch.stat().st_mtime
    assert sweep(folder, clock=FakeClock(written + SCRATCH_SECONDS)) == []
    assert len(sweep(folder, clock=FakeClock(written + SCRATCH_SECONDS + 1))) == 1
    assert not scratch.exists()


def test_the_cost_does_not_grow_with_the_rounds(folder: CrawlFolder) -> None:
    storage = folder.storage
    assert isinstance(storage, MemoryStorage)
    requests: list[str] = []
    costs = []
    for number in range(1, 40):
        commit(folder, number, [entry(state(number, "a"))])
        storage.hooks[:] = [lambda request, done: requests.append(request)]
        sweep(folder)
        storage.hooks.clear()
        costs.append(len(requests))
        requests.clear()
    assert max(costs[10:]) == min(costs[10:])


paths = st.one_of(
    st.builds(state, st.integers(1, 9), st.sampled_from("abc")),
    st.builds(
        "{}{:06d}/{}".format,
        st.sampled_from(["warc/", "rounds/", "index/", "leases/"]),
        st.integers(1, 9),
        st.sampled_from(["warc/a.gz", "work/a", "staged/a", "plan.json", "plan/a", "journal/s/1.json"]),
    ),
    st.sampled_from(["crawl.json", "inject/a.json", "state/odd", "tables/pages/round=000001/a.parquet", "x"]),
)


@given(st.lists(st.tuples(st.sets(paths), st.sets(paths)), min_size=1, max_size=8), st.integers(1, 3))
def test_no_named_file_is_ever_swept(rounds: list[tuple[set[str], set[str]]], keep: int) -> None:
    folder = CrawlFolder(MemoryStorage())
    named: list[set[str]] = []
    for number, (files, litter) in enumerate(rounds, start=1):
        for path in litter:
            if not folder.storage.exists(path):
                folder.storage.write_new(path, b"x")
        before = {info.path for info in folder.storage.list()}
        commit(folder, number, [entry(path) for path in sorted(files)])
        named.append(files)
        swept = set(sweep(folder, keep=keep))
        kept = set().union(*named[-keep:])
        assert not swept & kept
        for path in swept:
            assert path not in ("crawl.json", "inject/a.json", "state/odd", "x")
            assert not path.startswith(("tables/", "index/"))
            assert f"00000{number + 1}" not in path
            if not path.startswith("state/"):
                own = int(path.split("/")[1])
                assert path not in named[own - 1]
        after = {info.path for info in folder.storage.list()}
        assert swept <= before | files
        assert after == (before | files | {layout.manifest_path(number)}) - swept
