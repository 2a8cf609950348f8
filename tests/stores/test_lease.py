"""Leases, commits and journals on object stores, with real processes and real clocks."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

from connectors.clock import SystemClock
from connectors.faults import LeaseLost, Locked, LostRace
from connectors.files import Storage
from connectors.journal import Journal
from connectors.lease import LeaseKeeper, crawl_lease, shard_lease
from connectors.rounds import CrawlFolder
from schemas.journal import JournalEntry
from schemas.manifest import FORMAT_VERSION, Manifest

TERM = 2.0
REQUEST_SECONDS = 0.2

WORKER = """
import sys
from connectors.clock import SystemClock
from connectors.faults import LeaseLost
from connectors.lease import LeaseKeeper, shard_lease
from connectors.rounds import CrawlFolder
clock = SystemClock()
lease = shard_lease(CrawlFolder.at(sys.argv[1]), 1, 0, clock, float(sys.argv[2]))
lease.acquire()
with LeaseKeeper(lease, dict, clock) as keeper:
    while lease.holds(clock.monotonic(), 0.2):
        print("asks", clock.monotonic(), flush=True)
        clock.wait(0.02)
    keeper.lost.wait(20)
    print("lost", keeper.lost.is_set(), flush=True)
"""


@pytest.fixture
def folder(storage: Storage) -> CrawlFolder:
    return CrawlFolder(storage)


def worker(folder: CrawlFolder) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", WORKER, folder.root, str(TERM)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("asks ")
    return process


def test_a_stopped_worker_asks_nothing_after_it_was_succeeded(folder: CrawlFolder) -> None:
    clock = SystemClock()
    with worker(folder) as old:
        old.send_signal(signal.SIGSTOP)
        stopped = clock.monotonic()
        newcomer = shard_lease(folder, 1, 0, clock, TERM)
        assert newcomer.acquire().after_crash
        taken = clock.monotonic()
        assert TERM <= taken - stopped <= TERM + 5
        old.send_signal(signal.SIGCONT)
        newcomer.renew({})
        assert old.stdout is not None
        lines = [line.split() for line in old.stdout]
    assert lines[-1] == ["lost", "True"]
    asked = [float(at) for word, at in lines if word == "asks"]
    assert all(at + REQUEST_SECONDS <= taken for at in asked)


def test_a_killed_worker_is_waited_out(folder: CrawlFolder) -> None:
    clock = SystemClock()
    with worker(folder) as old:
        with pytest.raises(Locked, match=f"is held by process {old.pid} on "):
            shard_lease(folder, 1, 0, clock, TERM).acquire()
        old.kill()
    killed = clock.monotonic()
    newcomer = shard_lease(folder, 1, 0, clock, TERM)
    assert newcomer.acquire() == (2, True)
    assert TERM * 0.8 <= clock.monotonic() - killed <= TERM + 5
    newcomer.release()
    assert shard_lease(folder, 1, 0, clock, TERM).acquire() == (3, False)


def race(contestants: int, enter: Callable[[int], None]) -> list[int]:
    """Run the contestants at once; return who was not refused."""
    barrier = threading.Barrier(contestants)
    won: list[int] = []

    def run(number: int) -> None:
        barrier.wait()
        try:
            enter(number)
            won.append(number)
        except (Locked, LeaseLost, LostRace):
            pass

    threads = [threading.Thread(target=run, args=(number,)) for number in range(contestants)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return won


@pytest.mark.parametrize("stale", [False, True])
def test_of_sixteen_newcomers_one_gets_the_lease(folder: CrawlFolder, stale: bool) -> None:
    clock = SystemClock()
    if stale:
        crawl_lease(folder, clock, TERM, "dead").acquire()
    done = threading.Event()

    def take(number: int) -> None:
        lease = crawl_lease(folder, clock, TERM, f"t{number}")
        try:
            lease.acquire()
        except Locked:
            done.set()
            raise
        with LeaseKeeper(lease, dict, clock) as keeper:
            clock.wait(3 * TERM, keeper.lost)
        lease.renew({})

    assert len(race(16, take)) == 1
    assert done.is_set()


def manifest(run_id: str) -> Manifest:
    return Manifest(FORMAT_VERSION, 1, run_id, None, "", "", "", {}, 0, {}, {}, {}, [])


def test_of_sixteen_commits_one_stands(folder: CrawlFolder) -> None:
    won = race(16, lambda number: bool(folder.commit_manifest(manifest(f"run{number}"))) or None)
    assert [f"run{number}" for number in won] == [folder.read_manifest(1).run_id]


def test_of_sixteen_journal_entries_one_counts(folder: CrawlFolder) -> None:
    journal = Journal(folder, 1, 0)
    won = race(16, lambda number: journal.append(JournalEntry(0, 1, f"a{number}", 0, 1, (), {}, "o.parquet")))
    assert [f"a{number}" for number in won] == [entry.attempt for entry in journal.entries()]


def test_rounds_are_found(folder: CrawlFolder) -> None:
    assert folder.newest_manifest() is None
    folder.commit_manifest(manifest("a"))
    folder.storage.write_new("rounds/000002/plan.json", b"{}")
    assert folder.newest_round() == 1
    assert folder.unfinished_round() == 2
