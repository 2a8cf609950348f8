"""Notes of Crawl-delays: durable at once, the longest holds, damage is named."""

from __future__ import annotations

import pytest

from connectors import layout
from connectors.delay_notes import DelayNotes
from connectors.faults import DamagedFile
from connectors.journal import Journal
from connectors.rounds import CrawlFolder
from tests.fakes.memory_store import MemoryStorage

LONG_HOST = ".".join(["a" * 60] * 4)


def test_the_longest_delay_of_each_host_is_read() -> None:
    folder = CrawlFolder(MemoryStorage())
    notes = DelayNotes(folder, 3, 1)
    assert notes.read() == {}
    notes.leave("a.example", 7, 4.0)
    notes.leave("a.example", 7, 4.0)
    notes.leave("a.example", 7, 9.5)
    notes.leave(LONG_HOST, 8, 2.25)
    DelayNotes(folder, 3, 0).leave("b.example", 9, 1.0)
    assert notes.read() == {"a.example": 9.5, LONG_HOST: 2.25}


def test_notes_are_no_journal_entries() -> None:
    folder = CrawlFolder(MemoryStorage())
    DelayNotes(folder, 1, 0).leave("a.example", 7, 4.0)
    assert Journal(folder, 1, 0).segments() == []


def test_a_damaged_note_is_named() -> None:
    folder = CrawlFolder(MemoryStorage())
    path = layout.delay_note_path(1, 0, 7, 4.0)
    folder.storage.write_new(path, b'{"host": "a.example"}')
    with pytest.raises(DamagedFile, match=path):
        DelayNotes(folder, 1, 0).read()
