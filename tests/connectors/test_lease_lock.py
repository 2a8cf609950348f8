"""The lease on a local disk: it ends with its process, and not before."""

from __future__ import annotations

import fcntl
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from connectors.clock import SystemClock
from connectors.faults import LeaseLost, Locked
from connectors.files import StorageError, open_storage
from connectors.lease import Lease, LeaseKeeper, Tenure, crawl_lease, shard_lease
from connectors.rounds import CrawlFolder
from tests.fakes.clock import FakeClock


@pytest.fixture
def folder(tmp_path: Path) -> CrawlFolder:
    return CrawlFolder.at(str(tmp_path / "crawl"))


def lease(folder: CrawlFolder) -> Lease:
    return crawl_lease(folder, FakeClock(), 180)


HOLDER = """
import os, signal, subprocess, sys
from connectors.clock import SystemClock
from connectors.lease import crawl_lease
from connectors.rounds import CrawlFolder
lease = crawl_lease(CrawlFolder.at(sys.argv[1]), SystemClock(), 180)
lease.acquire()
children = [os.fork()]
if not children[0]:
    assert not lease.holds(0, 0)
    signal.pause()
children.append(subprocess.Popen(["sleep", "100"], close_fds=False).pid)
print(*children, flush=True)
sys.stdin.readline()
lease.renew({"after": "stop"})
print("renewed", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def holder(folder: CrawlFolder) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, folder.root], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    children = [int(pid) for pid in process.stdout.readline().split()]
    try:
        yield process, children
    finally:
        for pid in children:
            os.kill(pid, signal.SIGKILL)
        process.kill()
        process.communicate()


def test_one_process_has_one_holder(folder: CrawlFolder) -> None:
    first, second = lease(folder), lease(folder)
    assert first.peek() is None
    assert first.acquire() == Tenure(1, after_crash=False)
    assert first.holds(1e9, 1e9)
    with pytest.raises(Locked, match=rf"crawl is held by process {os.getpid()} on "):
        second.acquire()
    assert not second.holds(0, 0)
    standing = second.peek()
    assert standing is not None and standing.live
    first.release()
    first.release()
    assert not first.holds(0, 0)
    standing = second.peek()
    assert standing is not None and not standing.live
    assert second.acquire() == Tenure(2, after_crash=False)
    second.release()


def test_a_killed_holder_is_succeeded_at_once(
    folder: CrawlFolder, holder: tuple[subprocess.Popen[str], list[int]]
) -> None:
    process, children = holder
    with pytest.raises(Locked, match=f"process {process.pid} "):
        lease(folder).acquire()
    process.kill()
    process.wait()
    # Forked and spawned children live on, and have nothing of the lock.
    assert all(Path(f"/proc/{pid}").exists() for pid in children)
    second = lease(folder)
    assert second.acquire() == Tenure(2, after_crash=True)
    second.release()


def test_a_stopped_holder_still_holds(
    folder: CrawlFolder, holder: tuple[subprocess.Popen[str], list[int]]
) -> None:
    process, _ = holder
    assert process.stdin is not None and process.stdout is not None
    process.send_signal(signal.SIGSTOP)
    with pytest.raises(Locked, match="is held by"):
        lease(folder).acquire()
    process.send_signal(signal.SIGCONT)
    print(file=process.stdin, flush=True)
    assert process.stdout.readline() == "renewed\n"
    standing = lease(folder).peek()
    assert standing is not None
    assert (standing.live, standing.holder.progress) == (True, {"after": "stop"})


def test_a_newcomer_can_wait(folder: CrawlFolder) -> None:
    clock = FakeClock()
    first = shard_lease(folder, 1, 2, clock, 180)
    first.acquire()
    clock.after(30, first.release)
    second = shard_lease(folder, 1, 2, clock, 180)
    assert second.acquire(wait_seconds=60).epoch == 2
    assert 30 <= clock.monotonic() < 31
    second.release()


def test_a_look_does_not_keep_a_newcomer_out(folder: CrawlFolder) -> None:
    first = lease(folder)
    first.acquire()
    first.release()
    look = os.open(f"{folder.root}/leases/crawl.lock", os.O_RDONLY)
    fcntl.flock(look, fcntl.LOCK_SH)
    clock = FakeClock()
    clock.after(0.3, lambda: os.close(look))
    newcomer = crawl_lease(folder, clock, 180)
    assert newcomer.acquire().epoch == 2
    newcomer.release()


def test_a_removed_folder_ends_the_lease(folder: CrawlFolder) -> None:
    first = lease(folder)
    first.acquire()
    shutil.rmtree(folder.root)
    assert not first.holds(0, 0)
    with pytest.raises(LeaseLost):
        first.renew({})
    second = lease(folder)
    assert second.acquire().epoch == 1
    first.release()
    assert second.holds(0, 0)
    second.release()


def test_a_damaged_record_of_the_last_holder_counts_as_a_crash(folder: CrawlFolder) -> None:
    first = lease(folder)
    first.acquire()
    first.release()
    Path(folder.root, "leases/crawl.json").write_text('{"half')
    second = lease(folder)
    assert second.acquire() == Tenure(2, after_crash=True)
    second.release()


def test_a_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "crawl").write_text("")
    with pytest.raises(StorageError, match="a file stands where a folder is needed"):
        lease(CrawlFolder(open_storage(str(tmp_path / "crawl")))).acquire()


def test_a_keeper_renews_until_its_block_ends(folder: CrawlFolder) -> None:
    held = crawl_lease(folder, SystemClock(), 180)
    held.renew_every_seconds = 0.005
    held.acquire()
    third = threading.Event()
    told: list[int] = []

    def progress() -> dict[str, int]:
        told.append(len(told))
        if len(told) == 3:
            third.set()
        return {"urls_done": len(told)}

    with LeaseKeeper(held, progress, SystemClock()) as keeper:
        assert third.wait(30)
    assert not keeper.lost.is_set()
    count = len(told)
    standing = held.peek()
    assert standing is not None
    assert (standing.holder.renewals, standing.holder.progress) == (count, {"urls_done": count})
    shutil.rmtree(folder.root)
    with LeaseKeeper(held, progress, SystemClock()) as keeper:
        assert keeper.lost.wait(30)
    held.release()


def test_a_lease_not_held_can_be_pickled(folder: CrawlFolder) -> None:
    copy = pickle.loads(pickle.dumps(crawl_lease(folder, SystemClock(), 180)))
    assert copy.acquire().epoch == 1
    copy.release()
