"""What every object store gets for nothing: patience with passing failures, and files read by ranges."""

from __future__ import annotations

import io
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.files import AlreadyThere, StorageError, VersionChanged
from connectors.files import objects as object_storage
from connectors.files.objects import Passing
from connectors.files.ranged import FIRST_READ_BYTES, LARGEST_READ_BYTES, RangedFile
from tests.fakes.memory_store import MemoryStorage


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> MemoryStorage:
    monkeypatch.setattr(object_storage, "PAUSES_SECONDS", (0.0,) * 4)
    return MemoryStorage()


def failing(storage: MemoryStorage, times: int, *, after: bool) -> list[str]:
    """Let the next ``times`` requests fail, before or after they took effect; return what failed so far."""
    failed: list[str] = []

    def fail(request: str, done: bool) -> None:
        if done == after and len(failed) < times:
            failed.append(request)
            raise Passing("connection reset")

    storage.hooks[:] = [fail]
    return failed


@pytest.mark.parametrize("after", [False, True])
def test_failures_pass(storage: MemoryStorage, after: bool) -> None:
    failing(storage, 4, after=after)
    storage.write_new("a", b"1")
    failing(storage, 1, after=after)
    with pytest.raises(AlreadyThere):
        storage.write_new("a", b"2")
    failing(storage, 2, after=after)
    storage.move("a", "b")
    failing(storage, 2, after=after)
    storage.delete("c")
    storage.hooks.clear()
    assert [(info.path, storage.read_bytes(info.path)) for info in storage.list()] == [("b", b"1")]


def test_failures_that_last_are_named(storage: MemoryStorage) -> None:
    failed = failing(storage, 99, after=False)
    with pytest.raises(StorageError, match=r"mem://bucket/crawl/a: the store failed 5 times in a row \(conn"):
        storage.write_new("a", b"1")
    assert failed == ["put"] * 5


def test_equal_bytes_of_another_writer_do_not_make_a_winner(storage: MemoryStorage) -> None:
    storage.write_new("a", b"same")
    with pytest.raises(AlreadyThere):
        storage.write_new("a", b"same")


def test_a_move_that_somebody_else_finishes_is_done(storage: MemoryStorage) -> None:
    storage.write_new("staged/a", b"1")

    def overtake(request: str, done: bool) -> None:
        if request == "copy":
            storage.hooks.clear()
            storage.move("staged/a", "a")

    storage.hooks.append(overtake)
    storage.move("staged/a", "a")
    assert [info.path for info in storage.list()] == ["a"]
    with pytest.raises(FileNotFoundError, match="staged/b"):
        storage.move("staged/b", "b")


def test_replaces_only_the_version_that_was_read(storage: MemoryStorage) -> None:
    version = storage.write_replace("lease", b"1", "")
    with pytest.raises(VersionChanged):
        storage.write_replace("lease", b"2", "")
    assert storage.read_versioned("lease") == (b"1", version)
    storage.write_replace("lease", b"2", version)
    with pytest.raises(VersionChanged):
        storage.write_replace("lease", b"3", version)


reads = st.lists(st.tuples(st.integers(0, 300_000), st.integers(0, 200_000)), max_size=8)


@given(st.integers(0, 250_000), st.integers(0, 90_000), reads)
def test_a_ranged_file_reads_as_the_bytes_do(size: int, known: int, jumps: list[tuple[int, int]]) -> None:
    data = bytes(number * 7 % 251 for number in range(size))
    tail_start = max(0, size - known)

    def fetch(offset: int, length: int) -> bytes:
        assert length > 0
        assert offset + length <= tail_start
        return data[offset : offset + length]

    plain = io.BytesIO(data)
    ranged = io.BufferedReader(RangedFile(fetch, size, data[tail_start:]))
    for offset, length in jumps:
        assert ranged.seek(offset) == plain.seek(offset)
        assert ranged.read(length) == plain.read(length)
        assert ranged.tell() == plain.tell()
    assert ranged.seek(0, io.SEEK_END) == size
    ranged.seek(0)
    assert ranged.read() == data


def test_it_reads_further_ahead_while_it_is_read_in_order() -> None:
    asked: list[tuple[int, int]] = []

    def fetch(offset: int, length: int) -> bytes:
        asked.append((offset, length))
        return bytes(min(length, (64 << 20) - offset))

    with io.BufferedReader(RangedFile(fetch, 64 << 20)) as source:
        while source.read(10_000):
            pass
        assert len(asked) < 20
        assert max(length for _, length in asked) == LARGEST_READ_BYTES
        assert all(start + length == after for (start, length), (after, _) in itertools.pairwise(asked))
        asked.clear()
        for offset in (1 << 20, 40 << 20, 9 << 20):
            source.seek(offset)
            source.read(100)
        assert max(length for _, length in asked) <= 2 * FIRST_READ_BYTES
        asked.clear()
        source.seek(3 << 20)
        source.read(5 << 20)
        assert len(asked) <= 2


def test_a_ranged_file_refuses_a_negative_offset() -> None:
    with pytest.raises(ValueError, match="negative offset"):
        RangedFile(lambda offset, length: b"", 10).seek(-11, io.SEEK_END)


@pytest.mark.parametrize("size", [0, 1, 1_000, FIRST_READ_BYTES, FIRST_READ_BYTES + 2, 300_001])
def test_a_small_file_costs_one_request(storage: MemoryStorage, size: int) -> None:
    data = bytes(number % 251 for number in range(size))
    storage.write_new("a", data)
    asked: list[str] = []
    storage.hooks.append(lambda request, done: asked.append(request))
    with storage.open_read("a") as source:
        assert source.read() == data
    assert asked == ["get"] if size < FIRST_READ_BYTES else len(asked) <= 4
