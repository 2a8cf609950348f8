"""Local storage: created once and whole, whatever dies when."""

from __future__ import annotations

import errno
import gzip
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from connectors.files import AlreadyThere, Storage, StorageError, digest_of, open_storage
from connectors.files.local import explain


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(str(tmp_path / "crawl"))


def test_reads_what_was_written(storage: Storage) -> None:
    storage.write_new("a/b/c.bin", b"0123456789")
    assert storage.read_bytes("a/b/c.bin") == b"0123456789"
    assert storage.read_range("a/b/c.bin", 3, 4) == b"3456"
    assert storage.read_range("a/b/c.bin", 8, 40) == b"89"
    assert storage.size("a/b/c.bin") == 10
    with storage.open_read("a/b/c.bin") as source:
        source.seek(-2, os.SEEK_END)
        assert source.read() == b"89"


def test_missing_files_are_named(storage: Storage) -> None:
    for read in (storage.read_bytes, storage.open_read, storage.size, storage.read_versioned):
        with pytest.raises(FileNotFoundError, match="x/y: no such file"):
            read("x/y")
    assert not storage.exists("x/y")
    assert storage.list() == []
    assert storage.list_folders("x/") == []
    storage.delete("x/y")


def test_paths_stay_inside_the_root(storage: Storage) -> None:
    for path in ("/etc/passwd", "../x", "a/../b", "a//b", "", "./a"):
        with pytest.raises(ValueError, match="not a path inside"):
            storage.read_bytes(path)


def test_a_second_creation_changes_nothing(storage: Storage) -> None:
    storage.write_new("a", b"first")
    with pytest.raises(AlreadyThere, match="crawl/a is already there"):
        storage.write_new("a", b"second")
    assert storage.read_bytes("a") == b"first"
    assert storage.abandoned() == []


def test_of_sixteen_creators_one_wins(storage: Storage) -> None:
    barrier = threading.Barrier(16)
    winners: list[int] = []

    def create(number: int) -> None:
        barrier.wait()
        try:
            storage.write_new("rounds/manifest.json", b"%d" % number)
            winners.append(number)
        except AlreadyThere:
            pass

    threads = [threading.Thread(target=create, args=(n,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(winners) == 1
    assert storage.read_bytes("rounds/manifest.json") == b"%d" % winners[0]
    assert storage.abandoned() == []


def test_lists_by_prefix_in_order(storage: Storage) -> None:
    for path in ("b/2", "b/10", "b/1/x", "bc", "a", "b/.hidden"):
        storage.write_new(path, path.encode())
    storage.scratch_path("litter")
    assert [info.path for info in storage.list()] == ["a", "b/1/x", "b/10", "b/2", "bc"]
    assert [info.path for info in storage.list("b")] == ["b/1/x", "b/10", "b/2", "bc"]
    assert [info.path for info in storage.list("b/1")] == ["b/1/x", "b/10"]
    assert [info.size for info in storage.list("b/10")] == [4]
    assert storage.list_folders() == ["b"]
    assert storage.list_folders("b/") == ["1"]


def test_publishes_a_finished_file_byte_for_byte(storage: Storage) -> None:
    data = gzip.compress(b"record", mtime=0)
    with storage.creating("warc/x.warc.gz") as local:
        Path(local).write_bytes(data)
        assert storage.list() == []
    assert storage.read_bytes("warc/x.warc.gz") == data
    assert not Path(local).exists()


def test_a_scratch_folder_goes_with_what_it_holds(storage: Storage) -> None:
    with storage.scratch_folder("segment") as folder:
        (folder / "a").write_bytes(b"published")
        (folder / "b").write_bytes(b"left")
        same_disk = folder.stat().st_dev == Path(storage.root).stat().st_dev
        inode = (folder / "a").stat().st_ino
        storage.publish(str(folder / "a"), "warc/a")
    assert not folder.exists() and storage.abandoned() == []
    assert storage.read_bytes("warc/a") == b"published"
    assert same_disk and (Path(storage.root) / "warc/a").stat().st_ino == inode


def test_an_abandoned_scratch_folder_is_one_entry_and_can_be_deleted(storage: Storage) -> None:
    folder = Path(storage.scratch_path("segment"))
    folder.mkdir()
    for name, at in (("old", 1000.0), ("new", 3e9)):
        (folder / name).write_bytes(b"12345")
        os.utime(folder / name, (at, at))
    (found,) = storage.abandoned()
    assert found.path == f".scratch/{folder.name}" and found.size == 10 and found.modified_at == 3e9
    storage.delete(found.path)
    assert storage.abandoned() == [] and not folder.exists()


def test_publishes_nothing_when_the_writer_fails(storage: Storage) -> None:
    with pytest.raises(RuntimeError), storage.creating("x") as local:
        Path(local).write_bytes(b"half")
        raise RuntimeError
    assert storage.list() == []
    assert storage.abandoned() == []


def test_publishing_onto_a_taken_name_keeps_both_files(storage: Storage) -> None:
    storage.write_new("x", b"first")
    local = storage.scratch_path("x")
    Path(local).write_bytes(b"second")
    with pytest.raises(AlreadyThere):
        storage.publish(local, "x")
    assert storage.read_bytes("x") == b"first"
    assert Path(local).read_bytes() == b"second"


@pytest.fixture
def other_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on another disk than the crawl's, where the machine has one."""
    shared = Path("/dev/shm")
    parent = shared if shared.is_dir() and shared.stat().st_dev != tmp_path.stat().st_dev else tmp_path
    with tempfile.TemporaryDirectory(dir=parent) as folder:
        yield Path(folder)


def test_publishes_from_another_disk(storage: Storage, other_disk: Path) -> None:
    for expected in ("first", "second"):
        source = other_disk / "source"
        source.write_text(expected)
        if expected == "first":
            storage.publish(str(source), "a/x")
        else:
            with pytest.raises(AlreadyThere):
                storage.publish(str(source), "a/x")
    assert source.read_text() == "second"
    assert storage.read_bytes("a/x") == b"first"
    assert os.listdir(f"{storage.root}/a") == ["x"]
    assert storage.abandoned() == []


def test_a_folder_of_the_crawl_may_lie_on_another_disk(storage: Storage, other_disk: Path) -> None:
    Path(storage.root).mkdir()
    Path(storage.root, "warc").symlink_to(other_disk)
    with storage.creating("warc/a.warc.gz") as local:
        Path(local).write_bytes(b"record")
    storage.write_new("warc/b.warc.gz", b"record")
    storage.move("warc/b.warc.gz", "index/b")
    assert [info.path for info in storage.list()] == ["index/b", "warc/a.warc.gz"]
    assert os.listdir(other_disk) == ["a.warc.gz"]
    assert storage.abandoned() == []


def test_moves_once(storage: Storage) -> None:
    storage.write_new("staged/x", b"data")
    storage.move("staged/x", "tables/x")
    storage.move("staged/x", "tables/x")
    assert [info.path for info in storage.list()] == ["tables/x"]
    with pytest.raises(FileNotFoundError, match="staged/y"):
        storage.move("staged/y", "tables/y")


def test_finishes_a_move_that_died_between_link_and_unlink(storage: Storage) -> None:
    storage.write_new("staged/x", b"data")
    Path(storage.root, "tables").mkdir()
    os.link(f"{storage.root}/staged/x", f"{storage.root}/tables/x")
    storage.move("staged/x", "tables/x")
    assert [info.path for info in storage.list()] == ["tables/x"]


def test_a_move_never_replaces_another_file(storage: Storage) -> None:
    storage.write_new("staged/x", b"data")
    storage.write_new("tables/x", b"other data")
    with pytest.raises(StorageError, match="is not the file to be moved"):
        storage.move("staged/x", "tables/x")
    assert storage.read_bytes("tables/x") == b"other data"


def test_replaces_at_once(storage: Storage) -> None:
    storage.write_replace("leases/crawl.json", b"1")
    storage.write_replace("leases/crawl.json", b"22")
    assert storage.read_versioned("leases/crawl.json").data == b"22"
    with pytest.raises(ValueError, match="conditional"):
        storage.write_replace("leases/crawl.json", b"3", version="7")


KILLED = """
import os, signal, sys
from connectors.files import open_storage
storage = open_storage(sys.argv[1])
link = os.link
def killed(source, target):
    if sys.argv[2] == "after":
        link(source, target)
    os.kill(os.getpid(), signal.SIGKILL)
os.link = killed
if sys.argv[3] == "write_new":
    storage.write_new("rounds/manifest.json", b"x" * 100_000)
else:
    with storage.creating("rounds/manifest.json") as local:
        open(local, "wb").write(b"x" * 100_000)
"""


@pytest.mark.parametrize("operation", ["write_new", "creating"])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_kill_leaves_a_whole_file_or_none(storage: Storage, operation: str, moment: str) -> None:
    process = subprocess.run([sys.executable, "-c", KILLED, storage.root, moment, operation], check=False)
    assert process.returncode == -signal.SIGKILL
    sizes = {info.path: info.size for info in storage.list()}
    assert sizes == ({} if moment == "before" else {"rounds/manifest.json": 100_000})
    assert len(storage.abandoned()) == 1
    if moment == "before":
        storage.write_new("rounds/manifest.json", b"again")
        assert storage.read_bytes("rounds/manifest.json") == b"again"


def test_refusals_say_what_to_do() -> None:
    assert "disk is full" in str(explain(OSError(errno.ENOSPC, "x"), "/d/a"))
    assert "/d/a: cannot be written" in str(explain(OSError(errno.EROFS, "read-only"), "/d/a"))
    assert isinstance(explain(OSError(errno.EACCES, "x"), "/d/a"), StorageError)
    odd = OSError(errno.EIO, "x")
    assert explain(odd, "/d/a") is odd


LIMITED = """
import resource, sys
import pyarrow as pa, pyarrow.parquet as pq
from connectors.files import StorageError, open_storage
storage = open_storage(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
def parquet():
    with storage.creating("t.parquet") as local:
        pq.write_table(pa.table({"x": range(100_000)}), local)
data = b"x" * 20_000
for write in (lambda: storage.write_new("a", data), lambda: storage.write_replace("b", data), parquet):
    try:
        write()
    except StorageError as error:
        print(error)
"""


def test_a_full_disk_is_named_and_leaves_nothing(storage: Storage) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, storage.root], check=True, capture_output=True, text=True
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 3
    assert all("the disk is full; free some space" in line for line in lines)
    assert lines[0].startswith(f"{storage.root}/a: ")
    assert storage.list() == []
    assert storage.abandoned() == []


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "crawl").write_text("not a folder")
    storage = open_storage(str(tmp_path / "crawl"))
    for use in (storage.list, storage.list_folders, lambda: storage.write_new("a", b"")):
        with pytest.raises(StorageError, match="a file stands where a folder is needed"):
            use()


def test_unknown_schemes_are_refused() -> None:
    for root in ("hdfs://x/y", "gs://", "http://x/y"):
        with pytest.raises(StorageError, match="a crawl lies in"):
            open_storage(root)


def test_a_storage_is_its_root(storage: Storage) -> None:
    assert pickle.loads(pickle.dumps(storage)) == storage
    assert os.path.isabs(open_storage("relative").root)


def test_local_storage_imports_no_cloud_library_and_no_beam() -> None:
    code = (
        "import sys; from connectors.files import open_storage; from connectors.rounds import CrawlFolder;"
        "open_storage('/tmp').list_folders(); CrawlFolder.at('/tmp/none').find_identity();"
        "print([m for m in ('apache_beam', 'google.cloud.storage', 'boto3', 'pyarrow') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_digest_is_blake2b_of_the_bytes(storage: Storage) -> None:
    storage.write_new("x", b"abc")
    with storage.open_read("x") as source:
        assert digest_of(source) == "cf4ab791c62b8d2b2109c90275287816"
