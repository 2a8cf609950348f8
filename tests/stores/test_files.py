"""Object stores: created once and whole, byte for byte, through failures that pass."""

from __future__ import annotations

import gzip
import os
import pickle
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from connectors.files import AlreadyThere, Storage, StorageError, VersionChanged, open_storage


def test_reads_what_was_written(storage: Storage) -> None:
    storage.write_new("a/b/c.bin", b"0123456789")
    assert storage.read_bytes("a/b/c.bin") == b"0123456789"
    assert storage.read_range("a/b/c.bin", 3, 4) == b"3456"
    assert storage.read_range("a/b/c.bin", 8, 40) == b"89"
    assert storage.read_range("a/b/c.bin", 10, 4) == b""
    assert storage.size("a/b/c.bin") == 10
    with storage.open_read("a/b/c.bin") as source:
        source.seek(-2, os.SEEK_END)
        assert source.read() == b"89"


def test_empty_and_odd_names(storage: Storage) -> None:
    storage.write_new("a/round=000001/p 1%2F+é.bin", b"")
    assert storage.read_bytes("a/round=000001/p 1%2F+é.bin") == b""
    assert [info.path for info in storage.list("a/")] == ["a/round=000001/p 1%2F+é.bin"]


def test_missing_files_are_named(storage: Storage) -> None:
    for read in (storage.read_bytes, storage.open_read, storage.size, storage.read_versioned):
        with pytest.raises(FileNotFoundError, match="x/y: no such file"):
            read("x/y")
    assert not storage.exists("x/y")
    assert storage.list() == []
    assert storage.list_folders("x/") == []
    storage.delete("x/y")


def test_a_gz_is_stored_byte_for_byte(storage: Storage, tmp_path: Path) -> None:
    data = gzip.compress(b"record" * 100, mtime=0)
    storage.write_new("a.warc.gz", data)
    with storage.creating("b.warc.gz") as local:
        Path(local).write_bytes(data)
    for path in ("a.warc.gz", "b.warc.gz"):
        assert storage.size(path) == len(data)
        assert storage.read_bytes(path) == data
        assert storage.read_range(path, 1, 9) == data[1:10]
        with storage.open_read(path) as source:
            assert source.read() == data
    assert not Path(local).exists()


def test_large_files_go_and_come_whole(storage: Storage) -> None:
    data = os.urandom(20 << 20)
    with storage.creating("large") as local:
        Path(local).write_bytes(data)
    with storage.open_read("large") as source:
        assert source.read() == data
        source.seek(5 << 20)
        assert source.read(100) == data[5 << 20 :][:100]
    local = storage.scratch_path("large")
    Path(local).write_bytes(data)
    with pytest.raises(AlreadyThere):
        storage.publish(local, "large")
    Path(local).unlink()


def test_parquet_is_read_by_ranges(storage: Storage) -> None:
    table = pa.table({"key": pa.array(range(300_000), pa.uint64()), "text": ["x" * 20] * 300_000})
    with storage.creating("t.parquet") as local:
        pq.write_table(table, local, row_group_size=50_000, use_dictionary=False, compression="none")
    with storage.open_read("t.parquet") as source:
        parquet = pq.ParquetFile(source)
        assert parquet.read_row_group(3, columns=["key"]).column("key")[0].as_py() == 150_000
        assert parquet.read().equals(table)


@pytest.mark.parametrize("way", ["write_new", "publish"])
def test_of_sixteen_creators_one_wins(storage: Storage, way: str) -> None:
    barrier = threading.Barrier(16)
    winners: list[int] = []
    losers: list[int] = []

    def create(number: int) -> None:
        barrier.wait()
        try:
            if way == "write_new":
                storage.write_new("rounds/manifest.json", b"%d" % number)
            else:
                with storage.creating("rounds/manifest.json") as local:
                    Path(local).write_bytes(b"%d" % number)
            winners.append(number)
        except AlreadyThere:
            losers.append(number)

    threads = [threading.Thread(target=create, args=(n,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(winners), len(losers)) == (1, 15)
    assert storage.read_bytes("rounds/manifest.json") == b"%d" % winners[0]


def test_lists_by_prefix_in_order(storage: Storage) -> None:
    for path in ("b/2", "b/10", "b/1/x", "bc", "a"):
        storage.write_new(path, path.encode())
    assert [info.path for info in storage.list()] == ["a", "b/1/x", "b/10", "b/2", "bc"]
    assert [info.path for info in storage.list("b/1")] == ["b/1/x", "b/10"]
    assert [info.size for info in storage.list("b/10")] == [4]
    assert storage.list()[0].modified_at is not None
    assert storage.list_folders() == ["b"]
    assert storage.list_folders("b/") == ["1"]


def test_a_long_listing_is_complete(storage: Storage) -> None:
    if storage.root.startswith("s3"):
        for number in range(1_010):
            storage.write_new(f"n/{number:04d}", b"")
        assert len(storage.list("n/")) == 1_010
    else:
        for number in range(50):
            storage.write_new(f"n/{number:04d}", b"")
        assert len(storage.list("n/")) == 50


def test_moves_once(storage: Storage) -> None:
    storage.write_new("staged/x", b"data")
    storage.move("staged/x", "tables/x")
    storage.move("staged/x", "tables/x")
    assert [info.path for info in storage.list()] == ["tables/x"]
    with pytest.raises(FileNotFoundError, match="staged/y"):
        storage.move("staged/y", "tables/y")


def test_replaces_only_the_version_that_was_read(storage: Storage) -> None:
    storage.write_new("lease", b"1")
    first = storage.read_versioned("lease")
    second = storage.write_replace("lease", b"2", first.version)
    assert storage.read_versioned("lease") == (b"2", second)
    with pytest.raises(VersionChanged):
        storage.write_replace("lease", b"3", first.version)
    storage.write_replace("lease", b"4", second)
    storage.delete("lease")
    with pytest.raises(VersionChanged):
        storage.write_replace("lease", b"5", second)


def test_a_missing_bucket_is_named(scheme: str) -> None:
    storage = open_storage(f"{scheme}://no-such-bucket/crawl")
    for use in (storage.list, storage.list_folders, lambda: storage.write_new("a", b"x")):
        with pytest.raises(StorageError, match="no-such-bucket does not exist: create the bucket first"):
            use()
    with pytest.raises((FileNotFoundError, StorageError)):
        storage.read_bytes("a")


def test_a_storage_is_its_root(storage: Storage) -> None:
    storage.write_new("x", b"1")
    assert pickle.loads(pickle.dumps(storage)).read_bytes("x") == b"1"


def test_a_bucket_can_be_the_root(scheme: str, storage: Storage) -> None:
    storage.write_new("x", b"1")
    root = open_storage(f"{scheme}://crawls/")
    assert root.read_bytes(f"{storage.root.rpartition('/')[2]}/x") == b"1"
