"""The fetch journal: what each shard of a round has done for good, segment by segment.

A WARC file counts if and only if an entry names it. Every attempt of a shard begins by reading
the entries, skips the URLs that are done, and goes on with the next segment number.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields

from connectors import layout, sealed
from connectors.faults import DamagedFile, LostRace
from connectors.files import AlreadyThere
from connectors.rounds import CrawlFolder, entry_of
from schemas.journal import JournalEntry

READERS = 8
_NUMBER = re.compile(r"(\d{6,})\.json")
_SHARD = re.compile(r"shard-(\d{4,})")


@dataclass(frozen=True)
class Journal:
    """The entries of one shard in one round. Picklable; nothing is cached."""

    folder: CrawlFolder
    round: int
    shard: int

    def segments(self) -> list[int]:
        """Return the numbers of the entries, from 1; raise DamagedFile when one in between is gone."""
        folder = layout.journal_folder(self.round, self.shard)
        names = (info.path.removeprefix(folder) for info in self.folder.storage.list(folder))
        numbers = sorted(int(match[1]) for match in map(_NUMBER.fullmatch, names) if match)
        for expected, number in enumerate(numbers, start=1):
            if number != expected:
                path = layout.journal_path(self.round, self.shard, expected)
                raise DamagedFile(
                    f"{self.folder.root}/{path} is missing, but later journal entries are there"
                )
        return numbers

    def entries(self) -> list[JournalEntry]:
        """Return all entries in order; raise DamagedFile, naming it, for one that is damaged or gone."""
        numbers = self.segments()
        if len(numbers) < 2:
            return [self.read(number) for number in numbers]
        with ThreadPoolExecutor(READERS, "journal") as readers:
            return list(readers.map(self.read, numbers))

    def read(self, segment: int) -> JournalEntry:
        """Return one entry; raise DamagedFile when it is gone or not what was appended."""
        path = layout.journal_path(self.round, self.shard, segment)
        name = f"{self.folder.root}/{path}"
        try:
            document = sealed.unseal(self.folder.storage.read_bytes(path), name)
        except FileNotFoundError as error:
            raise DamagedFile(f"{name} is missing") from error
        members = {
            field.name: document[field.name] for field in fields(JournalEntry) if field.name in document
        }
        try:
            members["warcs"] = tuple(entry_of(member, name) for member in members["warcs"])
            entry = JournalEntry(**members)
        except (KeyError, TypeError) as error:
            raise DamagedFile(f"{name} is damaged: {error}") from error
        if (entry.shard, entry.segment) != (self.shard, segment):
            raise DamagedFile(f"{name} is damaged: it is entry {entry.segment} of shard {entry.shard}")
        return entry

    def append(self, entry: JournalEntry) -> None:
        """Make a segment real. Of two attempts that append the same number one wins.

        The other gets LostRace: what it fetched since its last entry does not count, and it must
        stop asking at once. The entry before must be there (ValueError).
        """
        storage = self.folder.storage
        earlier = layout.journal_path(self.round, self.shard, entry.segment - 1)
        if entry.shard != self.shard or entry.segment < 1:
            raise ValueError(f"not an entry of shard {self.shard}: {entry.shard}, {entry.segment}")
        if entry.segment > 1 and not storage.exists(earlier):
            raise ValueError(f"{earlier} is missing: journal entries have no gaps")
        document = {**asdict(entry), "warcs": [warc._asdict() for warc in entry.warcs]}
        try:
            storage.write_new(
                layout.journal_path(self.round, self.shard, entry.segment), sealed.seal(document)
            )
        except AlreadyThere as error:
            raise LostRace(
                f"segment {entry.segment} of shard {self.shard} was journalled by another attempt"
            ) from error


def journal_shards(folder: CrawlFolder, number: int) -> list[int]:
    """Return the numbers of the shards that have journal entries in a round, ascending."""
    names = folder.storage.list_folders(f"{layout.round_folder(number)}journal/")
    return sorted(int(match[1]) for match in map(_SHARD.fullmatch, names) if match)
