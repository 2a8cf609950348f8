"""Shard leases of a run that died: they stood still while its crawl lease was waited out, so they are free too."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import NamedTuple

from connectors import layout
from connectors.clock import Clock
from connectors.files.base import StorageError, VersionChanged
from connectors.files.objects import ObjectStorage
from connectors.holder import Holder, holder_bytes, read_holder
from connectors.rounds import CrawlFolder


class _Noted(NamedTuple):
    path: str
    holder: Holder
    version: str


class DeadShards:
    """Saves a resumed round on an object store the second wait: `note`, wait for the crawl's lease, `free`.

    On a local disk a lock ends with its process, and there is nothing to do.
    """

    def __init__(self, folder: CrawlFolder, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock
        self._noted: list[_Noted] = []
        self._noted_at = clock.monotonic()

    def note(self) -> None:
        """Note who holds the shards of the unfinished round. Costs nothing but a look-up when there is none."""
        storage = self._folder.storage
        number = self._folder.unfinished_round() if isinstance(storage, ObjectStorage) else None
        if number is None:
            return
        for info in storage.list(layout.lease_folder(number)):
            data, version = storage.read_versioned(info.path)
            holder = read_holder(data, f"{self._folder.root}/{info.path}")
            if not holder.released:
                self._noted.append(_Noted(info.path, holder, version))
        # After the reads: whatever was written before them was written before this.
        self._noted_at = self._clock.monotonic()

    def free(self, lease_seconds: float) -> int:
        """Mark as free each lease that has stood still since `note` for a whole term; return how many.

        The term is the holder's own or ``lease_seconds``, the longer one. A lease that was renewed meanwhile is
        a live worker's, and is left alone.
        """
        waited = self._clock.monotonic() - self._noted_at
        freed = 0
        for noted in self._noted:
            if waited < max(lease_seconds, noted.holder.term_seconds):
                continue
            released = replace(noted.holder, released=True)
            # A lease that cannot be freed is waited out by the shard, as it would be without this.
            with contextlib.suppress(VersionChanged, StorageError):
                self._folder.storage.write_replace(noted.path, holder_bytes(released), noted.version)
                freed += 1
        return freed
