"""One URL in the frontier calendar: its row, and the slot in which it stands."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from connectors.calendar import slot_in
from connectors.files import Storage
from connectors.rows import table_to_rows
from connectors.runs import Keys, SealedFile, round_of
from connectors.runs.keys import as_keys
from connectors.slots import Slot
from schemas.manifest import FileEntry
from schemas.state import UrlState

CACHED_GROUPS = 256


class Standing(NamedTuple):
    """A known URL: its row, its slot, and the round that put it there."""

    state: UrlState
    slot: Slot
    dealt_in: int


class CalendarLookup:
    """Point look-ups in a committed calendar. ``entries`` are its files, of all partitions or of some.

    Of the files whose key ranges hold the URL's host only the row groups that can hold it are read; the keys
    of up to 256 groups are kept, for a chain of URLs asks for the same ones again. Raises DamagedRun.
    """

    def __init__(self, storage: Storage, entries: Sequence[FileEntry]) -> None:
        self._storage = storage
        self._entries = sorted(entries, key=lambda entry: entry.path)
        self._keys = lru_cache(maxsize=CACHED_GROUPS)(self._read_keys)
        self._bounds = lru_cache(maxsize=None)(self._read_bounds)

    def find(self, host_key: int, url_key: int) -> Standing | None:
        """Return where a URL stands, None for one that the crawl does not know."""
        for entry in self._entries:
            if not entry.min_key <= host_key <= entry.max_key:
                continue
            for group, (low, high) in enumerate(self._bounds(entry)):
                if low <= host_key <= high:
                    position = _position(*self._keys(entry, group), host_key, url_key)
                    if position is not None:
                        return self._standing(entry, group, position)
        return None

    def _read_bounds(self, entry: FileEntry) -> tuple[tuple[int, int], ...]:
        with SealedFile(self._storage, entry) as file:
            place = file.footer.schema.names.index("host_key")
            bounds = [
                file.footer.row_group(group).column(place).statistics for group in range(len(file.group_rows))
            ]
        return tuple((int(bound.min), int(bound.max)) for bound in bounds)

    def _read_keys(self, entry: FileEntry, group: int) -> tuple[Keys, Keys]:
        with SealedFile(self._storage, entry) as file:
            rows = file.rows([group], ["host_key", "url_key"])
        return as_keys(rows.column("host_key")), as_keys(rows.column("url_key"))

    def _standing(self, entry: FileEntry, group: int, position: int) -> Standing:
        with SealedFile(self._storage, entry) as file:
            rows = file.rows([group]).slice(position, 1)
        return Standing(table_to_rows(rows, UrlState)[0], slot_in(entry), round_of(entry))


def _position(hosts: Keys, urls: Keys, host_key: int, url_key: int) -> int | None:
    """Return the place of a pair among sorted pairs, None when it is not there."""
    first = int(np.searchsorted(hosts, np.uint64(host_key), "left"))
    last = int(np.searchsorted(hosts, np.uint64(host_key), "right"))
    place = first + int(np.searchsorted(urls[first:last], np.uint64(url_key), "left"))
    return place if place < last and int(urls[place]) == url_key else None
