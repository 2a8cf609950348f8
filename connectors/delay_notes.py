"""Crawl-delays that an attempt of a shard has learned and not journalled yet, for whoever takes over."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from connectors import layout, sealed
from connectors.faults import DamagedFile
from connectors.files import AlreadyThere
from connectors.rounds import CrawlFolder

READERS = 8


@dataclass(frozen=True)
class DelayNotes:
    """The notes of one shard in one round: small create-only files beside its journal. Picklable.

    A host that asks for a longer pause than the operator does tells so in its robots.txt, which is journalled
    with the next segment. A note covers the time until then. It is durable when ``leave`` returns.
    """

    folder: CrawlFolder
    round: int
    shard: int

    def leave(self, host: str, host_key: int, seconds: float) -> None:
        """Note the host's delay. Idempotent; of two attempts both may leave it."""
        path = layout.delay_note_path(self.round, self.shard, host_key, seconds)
        with contextlib.suppress(AlreadyThere):
            self.folder.storage.write_new(path, sealed.seal({"host": host, "delay_seconds": seconds}))

    def read(self) -> dict[str, float]:
        """Return the longest delay noted of each host; raise DamagedFile, naming it, for a damaged note."""
        prefix = layout.delay_notes_prefix(self.round, self.shard)
        paths = [info.path for info in self.folder.storage.list(prefix)]
        longest: dict[str, float] = {}
        with ThreadPoolExecutor(READERS, "delays") as readers:
            for host, seconds in readers.map(self._read, paths):
                longest[host] = max(seconds, longest.get(host, 0.0))
        return longest

    def _read(self, path: str) -> tuple[str, float]:
        name = f"{self.folder.root}/{path}"
        document = sealed.unseal(self.folder.storage.read_bytes(path), name)
        try:
            return str(document["host"]), float(document["delay_seconds"])
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedFile(f"{name} is damaged: {error}") from error
