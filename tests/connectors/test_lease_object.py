"""The lease on an object store: never two holders asking, whatever stalls."""

from __future__ import annotations

import contextlib
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.faults import LeaseLost, Locked
from connectors.files import StorageError
from connectors.files import objects as object_storage
from connectors.files.objects import Passing
from connectors.lease import Lease, LeaseKeeper, Tenure, crawl_lease, shard_lease
from connectors.rounds import CrawlFolder
from tests.fakes.clock import FakeClock
from tests.fakes.memory_store import MemoryStorage

TERM = 180.0


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def folder() -> CrawlFolder:
    return CrawlFolder(MemoryStorage())


def lease(folder: CrawlFolder, clock: FakeClock, token: str) -> Lease:
    return crawl_lease(folder, clock, TERM, token)


def renewing(holder: Lease, clock: FakeClock, every: float, times: int) -> None:
    def renew(left: int) -> None:
        holder.renew({"left": left})
        if left:
            clock.after(every, lambda: renew(left - 1))

    clock.after(every, lambda: renew(times - 1))


def test_a_free_lease_is_taken_at_once(folder: CrawlFolder, clock: FakeClock) -> None:
    first = lease(folder, clock, "a")
    assert first.peek() is None
    assert first.acquire() == Tenure(1, after_crash=False)
    standing = first.peek()
    assert standing is not None
    assert (standing.holder.token, standing.live) == ("a", True)
    first.release()
    first.release()
    assert not first.holds(clock.monotonic(), 0)
    assert lease(folder, clock, "b").acquire() == Tenure(2, after_crash=False)
    assert clock.monotonic() == 0


def test_a_live_holder_is_left_alone(folder: CrawlFolder, clock: FakeClock) -> None:
    first = lease(folder, clock, "a")
    first.acquire()
    renewing(first, clock, every=20, times=30)
    with pytest.raises(Locked, match=r"bucket/crawl is held by process \d+ on "):
        lease(folder, clock, "b").acquire()
    assert clock.monotonic() <= 25


def test_a_newcomer_waits_for_a_live_holder_as_long_as_it_is_told(
    folder: CrawlFolder, clock: FakeClock
) -> None:
    first = lease(folder, clock, "a")
    first.acquire()
    renewing(first, clock, every=20, times=5)
    clock.after(110, first.release)
    assert lease(folder, clock, "b").acquire(wait_seconds=400) == Tenure(2, after_crash=False)
    assert 110 <= clock.monotonic() <= 120


def test_a_newcomer_with_a_shorter_term_waits_as_long_as_the_holder_counts_on(
    folder: CrawlFolder, clock: FakeClock
) -> None:
    first = lease(folder, clock, "a")
    first.acquire()
    hasty = crawl_lease(folder, clock, 10.0, "b")
    standing = hasty.peek()
    clock.advance(100)
    assert standing is not None and standing.live
    assert hasty.acquire() == Tenure(2, after_crash=True)
    assert not first.holds(clock.monotonic(), 0)
    assert clock.monotonic() >= 100 + TERM


def test_a_dead_holder_is_waited_out(folder: CrawlFolder, clock: FakeClock) -> None:
    first = lease(folder, clock, "a")
    first.acquire()
    clock.advance(50)
    second = lease(folder, clock, "b")
    assert second.acquire() == Tenure(2, after_crash=True)
    assert 50 + TERM <= clock.monotonic() <= 50 + TERM + 5
    assert not first.holds(clock.monotonic(), 0)
    with pytest.raises(LeaseLost, match="taken over"):
        first.renew({})
    with pytest.raises(LeaseLost):
        first.renew({})
    second.renew({"urls_done": 3})
    standing = first.peek()
    assert standing is not None
    assert standing.holder.progress == {"urls_done": 3}


def test_waiting_ends_when_told_to_stop(folder: CrawlFolder, clock: FakeClock) -> None:
    lease(folder, clock, "a").acquire()
    stop = threading.Event()
    clock.after(7, stop.set)
    with pytest.raises(Locked, match="stopped while waiting"):
        lease(folder, clock, "b").acquire(stop=stop)
    assert clock.monotonic() == 7


def test_holds_only_what_fits_into_the_term(folder: CrawlFolder, clock: FakeClock) -> None:
    holder = lease(folder, clock, "a")
    assert not holder.holds(0, 0)
    holder.acquire()
    assert holder.holds(55, 120)
    assert not holder.holds(55.1, 120)
    clock.advance(20)
    holder.renew({})
    assert holder.holds(75, 120)
    assert holder.renew_every_seconds == 20


@pytest.mark.parametrize("slow_step", ["acquire", "renew"])
def test_a_term_counts_from_before_it_was_asked_for(clock: FakeClock, slow_step: str) -> None:
    storage = MemoryStorage()
    holder = lease(CrawlFolder(storage), clock, "a")

    def slow(request: str, done: bool) -> None:
        if request == "put":
            clock.advance(15)

    if slow_step == "renew":
        holder.acquire()
    storage.hooks.append(slow)
    if slow_step == "acquire":
        holder.acquire()
    else:
        holder.renew({})
    assert clock.monotonic() == 30
    assert holder.holds(55, 120)
    assert not holder.holds(55.1, 120)


def test_shards_have_leases_of_their_own(folder: CrawlFolder, clock: FakeClock) -> None:
    assert shard_lease(folder, 1, 0, clock, TERM).acquire().epoch == 1
    assert shard_lease(folder, 1, 1, clock, TERM).acquire().epoch == 1
    assert shard_lease(folder, 2, 0, clock, TERM).acquire().epoch == 1
    assert folder.storage.exists("leases/000002/shard-0000.json")


@pytest.mark.parametrize("name", ["acquire", "renew", "release"])
def test_a_lost_answer_is_not_a_lost_lease(
    clock: FakeClock, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_storage, "PAUSES_SECONDS", (0.0, 0.0))
    storage = MemoryStorage()
    holder = lease(CrawlFolder(storage), clock, "a")
    losses = [name]

    def lose(request: str, done: bool) -> None:
        if request == "put" and done and losses:
            losses.pop()
            raise Passing("connection reset")

    for step in ("acquire", "renew", "release"):
        if step == name:
            storage.hooks.append(lose)
        getattr(holder, step)(*([{}] if step == "renew" else []))
    assert not losses
    assert lease(CrawlFolder(storage), clock, "b").acquire() == Tenure(2, after_crash=False)


def test_a_store_that_is_down_lets_the_term_run_out(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_storage, "PAUSES_SECONDS", (0.0,))
    storage = MemoryStorage()
    holder = lease(CrawlFolder(storage), clock, "a")
    holder.acquire()

    def down(request: str, done: bool) -> None:
        raise Passing("down")

    storage.hooks.append(down)
    with LeaseKeeper(holder, dict, clock) as keeper:
        assert keeper.lost.wait(30)
    assert TERM - 5 < clock.monotonic() <= TERM + 20
    with pytest.raises(StorageError, match="failed 2 times"):
        holder.renew({})
    holder.release()


delays = st.lists(st.floats(0, 90), min_size=1, max_size=12)


@given(
    renewals=delays,
    requests=st.lists(st.tuples(st.floats(0, 40), st.floats(0, 120)), max_size=20),
    latencies=st.lists(st.floats(0, 60), min_size=1, max_size=6),
    start=st.floats(0, 400),
)
def test_no_request_of_the_old_holder_outlives_its_term(
    renewals: list[float], requests: list[tuple[float, float]], latencies: list[float], start: float
) -> None:
    clock = FakeClock()
    storage = MemoryStorage()
    folder = CrawlFolder(storage)
    holder = lease(folder, clock, "old")
    holder.acquire()
    turn = 0
    is_old = False

    def slow(request: str, done: bool) -> None:
        nonlocal turn
        if is_old:
            turn += 1
            clock.advance(latencies[turn % len(latencies)])

    def renew() -> None:
        nonlocal is_old
        is_old = True
        with contextlib.suppress(LeaseLost):
            holder.renew({})
        is_old = False

    storage.hooks.append(slow)
    at = 0.0
    for gap in renewals:
        at += gap
        clock.after(at, renew)
    asked: list[tuple[float, float]] = []
    at = 0.0
    for gap, length in requests:
        at += gap

        def ask(length: float = length) -> None:
            if holder.holds(clock.monotonic(), length):
                asked.append((clock.monotonic(), clock.monotonic() + length))

        clock.after(at, ask)
    clock.advance(start)
    try:
        lease(folder, clock, "new").acquire()
    except Locked:
        return
    taken = clock.monotonic()
    clock.advance(2_000)
    assert all(end <= taken for _, end in asked)
