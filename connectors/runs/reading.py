"""One run file, opened: its keys by row group, and the choice of what to read of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from connectors.files import Storage
from connectors.runs.keys import Keys, Mask, as_keys
from connectors.runs.sealing import DamagedRun, SealedFile
from schemas.manifest import FileEntry

BLOCK_GROUPS = 8
RANGED_SHARE = 0.3


class RunReader(SealedFile):
    """An open run. ``starts`` and ``ends`` are the least and greatest k1 of each row group.

    Raises DamagedRun, here and on every read, as SealedFile does.
    """

    def __init__(self, storage: Storage, entry: FileEntry) -> None:
        super().__init__(storage, entry)
        bounds = [_group_bounds(self.footer.row_group(n)) for n in range(self.footer.num_row_groups)]
        self.starts, self.ends = as_keys([low for low, _ in bounds]), as_keys([high for _, high in bounds])
        found = (bounds[0][0], bounds[-1][1]) if bounds else (0, 0)
        if found != (entry.min_key, entry.max_key):
            self.close()
            raise DamagedRun(entry.path, f"keys {found}, its manifest says {(entry.min_key, entry.max_key)}")

    @property
    def groups(self) -> int:
        """The number of row groups."""
        return len(self.starts)

    def keys(self, groups: Sequence[int]) -> tuple[Keys, Keys]:
        """Return the keys of these row groups, in the order given."""
        rows = self.rows(groups, ["k1", "k2"])
        return as_keys(rows.column("k1")), as_keys(rows.column("k2"))

    def touched(self, k1: Keys) -> Mask:
        """Return which row groups can hold one of these sorted k1."""
        touched: Mask = np.searchsorted(k1, self.ends, "right") > np.searchsorted(k1, self.starts, "left")
        return touched

    def blocks(self, touched: Mask) -> Iterator[list[int]]:
        """Yield the row groups to read, a few at a time, each list one contiguous range.

        When fewer than 0.3 of the groups are touched only those are read; otherwise the file is
        streamed, for then seeking costs more than the bytes it saves.
        """
        if not touched.any():
            return
        streams = touched.mean() >= RANGED_SHARE
        wanted = range(self.groups) if streams else np.flatnonzero(touched).tolist()
        block: list[int] = []
        for group in wanted:
            if block and (len(block) == BLOCK_GROUPS or group != block[-1] + 1):
                yield block
                block = []
            block.append(group)
        if block:
            yield block


def _group_bounds(group: Any) -> tuple[int, int]:
    k1 = group.column(0).statistics
    return int(k1.min), int(k1.max)
