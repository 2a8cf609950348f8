"""The fetch journal: entries in order, one winner a number, and no damage unnoticed."""

from __future__ import annotations

import pickle
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors import layout, sealed
from connectors.faults import DamagedFile, LostRace
from connectors.files import digest_of
from connectors.journal import Journal, journal_shards
from connectors.rounds import CrawlFolder
from schemas.journal import JournalEntry
from schemas.manifest import FileEntry


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(CrawlFolder.at(str(tmp_path)), 2, 3)


def entry(segment: int, attempt: str = "aa") -> JournalEntry:
    path = f"warc/000002/warc/x-{segment}-{attempt}.warc.gz"
    warc = FileEntry(path, "", "warc", 0, 0, 7, 1234, "ab" * 16, 0, 2**64 - 1)
    cdxj = {path: layout.work_file(2, f"{segment}.cdxj.gz")}
    return JournalEntry(
        3, segment, attempt, 1.5, 61.25, (warc,), cdxj, "o.parquet", "h.parquet", "r.parquet", 9, 1000
    )


def test_entries_come_back_in_order(journal: Journal) -> None:
    assert journal.entries() == []
    written = [entry(number) for number in range(1, 13)]
    for one in written:
        journal.append(one)
    assert journal.entries() == written
    assert pickle.loads(pickle.dumps(journal)).read(12) == written[11]
    assert (journal.folder.storage.exists("rounds/000002/journal/shard-0003/000012.json")) is True
    assert journal_shards(journal.folder, 2) == [3]
    assert journal_shards(journal.folder, 1) == []


def test_of_two_attempts_one_gets_the_number(journal: Journal) -> None:
    journal.append(entry(1, "aa"))
    with pytest.raises(LostRace, match="segment 1 of shard 3"):
        journal.append(entry(1, "bb"))
    assert [one.attempt for one in journal.entries()] == ["aa"]


def test_racing_attempts_have_one_winner(journal: Journal) -> None:
    barrier = threading.Barrier(16)
    won: list[str] = []

    def append(attempt: str) -> None:
        barrier.wait()
        try:
            journal.append(entry(1, attempt))
            won.append(attempt)
        except LostRace:
            pass

    threads = [threading.Thread(target=append, args=(f"t{number}",)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [journal.read(1).attempt] == won


def test_gaps_are_neither_made_nor_overlooked(journal: Journal) -> None:
    with pytest.raises(ValueError, match="no gaps"):
        journal.append(entry(2))
    with pytest.raises(ValueError, match="not an entry of shard 3"):
        journal.append(replace(entry(1), shard=4))
    for number in (1, 2, 3):
        journal.append(entry(number))
    journal.folder.storage.delete(layout.journal_path(2, 3, 2))
    with pytest.raises(DamagedFile, match=r"journal/shard-0003/000002\.json is missing"):
        journal.entries()
    with pytest.raises(DamagedFile, match=r"000002\.json is missing"):
        journal.read(2)


def test_an_entry_in_another_ones_place_is_noticed(journal: Journal) -> None:
    journal.append(entry(1))
    data = journal.folder.storage.read_bytes(layout.journal_path(2, 3, 1))
    journal.folder.storage.write_new(layout.journal_path(2, 3, 2), data)
    with pytest.raises(DamagedFile, match=r"000002\.json is damaged: it is entry 1 of shard 3"):
        journal.entries()


@given(st.data())
def test_any_changed_byte_is_noticed_and_named(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    journal = Journal(CrawlFolder.at(str(tmp_path_factory.mktemp("crawl"))), 2, 3)
    journal.append(entry(1))
    path = layout.journal_path(2, 3, 1)
    content = bytearray(journal.folder.storage.read_bytes(path))
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content) - 1))]
    else:
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    Path(journal.folder.root, path).write_bytes(content)
    with pytest.raises(DamagedFile, match=r"000001\.json is damaged"):
        journal.read(1)


def test_side_files_are_checked_against_their_digest(journal: Journal) -> None:
    storage = journal.folder.storage
    storage.write_new("o.parquet", b"rows")
    with storage.open_read("o.parquet") as source:
        digest = digest_of(source)
    assert sealed.read_checked(storage, "o.parquet", digest) == b"rows"
    Path(storage.root, "o.parquet").write_bytes(b"rowz")
    with pytest.raises(DamagedFile, match=r"o\.parquet is damaged"):
        sealed.read_checked(storage, "o.parquet", digest)
    storage.delete("o.parquet")
    with pytest.raises(DamagedFile, match=r"o\.parquet is missing"):
        sealed.read_checked(storage, "o.parquet", digest)
