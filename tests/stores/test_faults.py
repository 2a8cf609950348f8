"""Object stores that fail now and then, or for good: a correct retry or a clear refusal."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from connectors.files import AlreadyThere, Storage, StorageError, open_storage
from connectors.files import objects as object_storage
from tests.fakes.faulty_proxy import FaultyProxy, faulty_proxy
from tests.fakes.remote_crawl import RemoteCrawl, differences

ADDRESS = {"gs": "STORAGE_EMULATOR_HOST", "s3": "AWS_ENDPOINT_URL"}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_storage, "PAUSES_SECONDS", (0.01,) * 7)


@pytest.mark.parametrize("every", [2, 3, 7])
def test_passing_failures_change_nothing(proxy: FaultyProxy, storage: Storage, every: int) -> None:
    proxy.every = every
    for number in range(20):
        storage.write_new(f"staged/{number:02d}", b"%d" % number)
        with storage.creating(f"warc/{number:02d}") as local:
            Path(local).write_bytes(b"w%d" % number)
    for number in range(20):
        with pytest.raises(AlreadyThere):
            storage.write_new(f"staged/{number:02d}", b"other")
        storage.move(f"staged/{number:02d}", f"tables/{number:02d}")
    assert proxy.faults > 10
    assert [info.path for info in storage.list("staged/")] == []
    assert storage.list_folders() == ["tables", "warc"]
    assert [storage.read_bytes(info.path) for info in storage.list("tables/")] == [
        b"%d" % number for number in range(20)
    ]
    assert [storage.read_bytes(info.path) for info in storage.list("warc/")] == [
        b"w%d" % number for number in range(20)
    ]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("every", [5, 11])
def test_three_rounds_through_passing_failures(
    proxy: FaultyProxy,
    crawl: RemoteCrawl,
    local_tables: dict[str, list[tuple]],
    every: int,
    tmp_path: Path,
) -> None:
    proxy.kinds = ("before", "after", "slow")
    proxy.every = every
    assert [crawl.round()[0] for _ in range(3)] == [0, 0, 0]
    assert crawl.run("audit", f"--crawl={crawl.root}")[0] == 0
    proxy.every = 0
    assert proxy.faults > 100
    assert differences(crawl.tables(tmp_path), local_tables) == {}


def test_a_store_that_is_down_is_named(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_storage, "PAUSES_SECONDS", (0.01,) * 3)
    with faulty_proxy(os.environ[ADDRESS[scheme]], every=1) as proxy:
        monkeypatch.setenv(ADDRESS[scheme], proxy.address)
        storage = open_storage(f"{scheme}://crawls/down")
        with pytest.raises(StorageError, match=r"crawls/down/x: the store failed 4 times in a row"):
            storage.write_new("x", b"1")
        assert proxy.faults >= 4
