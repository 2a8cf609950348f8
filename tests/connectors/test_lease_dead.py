"""Shard leases of a dead run: freed when they stood still for a term, left alone when they are renewed."""

from __future__ import annotations

from pathlib import Path

import pytest

from connectors.faults import LeaseLost
from connectors.lease import Lease, crawl_lease, shard_lease
from connectors.lease_dead import DeadShards
from connectors.rounds import CrawlFolder
from tests.fakes.clock import FakeClock
from tests.fakes.memory_store import MemoryStorage

TERM = 180.0


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def folder() -> CrawlFolder:
    folder = CrawlFolder(MemoryStorage())
    folder.storage.write_new("rounds/000001/plan.json", b"{}")
    return folder


def shard(folder: CrawlFolder, clock: FakeClock, number: int, term: float = TERM) -> Lease:
    return shard_lease(folder, 1, number, clock, term)


def test_a_resumed_round_waits_once(folder: CrawlFolder, clock: FakeClock) -> None:
    crawl_lease(folder, clock, TERM).acquire()
    dead = [shard(folder, clock, number) for number in (0, 1)]
    for lease in dead:
        lease.acquire()
    shards = DeadShards(folder, clock)
    shards.note()
    assert crawl_lease(folder, clock, TERM).acquire().after_crash
    waited = clock.monotonic()
    assert shards.free(TERM) == 2
    for number in (0, 1):
        shard(folder, clock, number).acquire()
    assert clock.monotonic() == waited
    with pytest.raises(LeaseLost):
        dead[0].renew({})


def test_a_worker_that_lives_keeps_its_shard(folder: CrawlFolder, clock: FakeClock) -> None:
    lease = shard(folder, clock, 0)
    lease.acquire()
    shards = DeadShards(folder, clock)
    shards.note()
    clock.advance(20)
    lease.renew({})
    clock.advance(TERM)
    assert shards.free(TERM) == 0
    lease.renew({})


@pytest.mark.parametrize("term", [TERM, 2 * TERM])
def test_nothing_is_freed_before_its_term(folder: CrawlFolder, clock: FakeClock, term: float) -> None:
    shard(folder, clock, 0, term).acquire()
    shards = DeadShards(folder, clock)
    shards.note()
    clock.advance(term - 1)
    assert shards.free(10) == 0
    clock.advance(1)
    assert shards.free(10) == 1


def test_a_local_disk_needs_none_of_it(tmp_path: Path, clock: FakeClock) -> None:
    shards = DeadShards(CrawlFolder.at(str(tmp_path)), clock)
    shards.note()
    clock.advance(TERM)
    assert shards.free(TERM) == 0
