"""Rows by key: what the runs of a table hold for these keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connectors.files import Storage
from connectors.runs.keys import Index, Keys, as_keys, expand, pair_bounds, sort_order
from connectors.runs.reading import RunReader
from connectors.runs.table import MULTI, REMOVED, RunTable, conform, oldest_first
from schemas.manifest import FileEntry


class Found(NamedTuple):
    """Rows of a table and, for each, the position of the candidate that asked for it."""

    rows: pa.Table
    candidate: Index


def lookup(
    storage: Storage, table: RunTable, runs: Sequence[FileEntry], k1: Keys, k2: Keys | None = None
) -> Found:
    """Return the rows with these keys (all columns, k1 and k2 too), ordered by the candidate's position.

    ``runs`` are of one partition. Candidates in any order, repeated ones each get their rows; without
    ``k2`` all rows with the same k1 are found. Newest_wins: at most one row a key, the youngest, and none
    when that is a tombstone. Multi: every row, those of older runs first. Set: the key itself, once.
    Memory: the candidates, the answer, and a few row groups. Raises DamagedRun.
    """
    wanted = _Wanted.of(as_keys(k1), None if k2 is None else as_keys(k2))
    ordered = oldest_first(table, runs)
    settles = table.kind != MULTI and k2 is not None
    parts: list[Found] = []
    for entry in reversed(ordered) if settles else ordered:
        found_here = list(_in_run(storage, table, entry, wanted))
        parts += found_here
        if settles:
            wanted = wanted.without([part.candidate for part in found_here])
    rows = pa.concat_tables([part.rows for part in parts]) if parts else table.schema.empty_table()
    candidate = np.concatenate([np.zeros(0, np.int64), *(part.candidate for part in parts)])
    order = np.argsort(candidate, kind="stable")
    found = Found(rows.take(order), candidate[order])
    return found if table.kind == MULTI else _youngest(table, found)


class _Wanted(NamedTuple):
    """Candidates sorted by key; ``order`` holds their positions in the caller's arrays."""

    k1: Keys
    k2: Keys | None
    order: Index

    @classmethod
    def of(cls, k1: Keys, k2: Keys | None) -> _Wanted:
        order = sort_order(k1, k2) if k2 is not None else np.argsort(k1, kind="stable")
        return cls(k1[order], None if k2 is None else k2[order], order)

    def without(self, positions: list[Index]) -> _Wanted:
        """Return the candidates that are not at these positions of the caller's arrays."""
        if not positions:
            return self
        left = ~np.isin(self.order, np.concatenate(positions))
        return _Wanted(self.k1[left], None if self.k2 is None else self.k2[left], self.order[left])

    def matches(self, run: RunReader, block: list[int], low: int, high: int) -> tuple[Index, Index]:
        """Return (candidate's position, row's position in the block) of every match within a block."""
        hay1, hay2 = run.keys(block)
        k1 = self.k1[low:high]
        if self.k2 is None:
            first, last = np.searchsorted(hay1, k1, "left"), np.searchsorted(hay1, k1, "right")
        else:
            first, last = pair_bounds(hay1, hay2, k1, self.k2[low:high])
        owner, position = expand(first, last)
        return self.order[low + owner], position


def _in_run(storage: Storage, table: RunTable, entry: FileEntry, wanted: _Wanted) -> Iterator[Found]:
    low = int(np.searchsorted(wanted.k1, np.uint64(entry.min_key), "left"))
    high = int(np.searchsorted(wanted.k1, np.uint64(entry.max_key), "right"))
    if low == high:
        return
    with RunReader(storage, entry) as run:
        for block in run.blocks(run.touched(wanted.k1[low:high])):
            first = int(np.searchsorted(wanted.k1, run.starts[block[0]], "left"))
            last = int(np.searchsorted(wanted.k1, run.ends[block[-1]], "right"))
            candidate, position = wanted.matches(run, block, first, last)
            if len(position):
                yield Found(conform(_rows_at(run, block, position), table.schema), candidate)


def _rows_at(run: RunReader, block: list[int], position: Index) -> pa.Table:
    """Return the rows at these positions of a block, reading only the row groups that hold them."""
    sizes = np.array([run.group_rows[group] for group in block])
    opens = np.cumsum(sizes) - sizes
    member = np.searchsorted(opens, position, "right") - 1
    hit = np.unique(member)
    opens_read = np.zeros(len(block), dtype=np.int64)
    opens_read[hit] = np.cumsum(sizes[hit]) - sizes[hit]
    rows = run.rows([block[number] for number in hit])
    return rows.take(position - opens[member] + opens_read[member])


def _youngest(table: RunTable, found: Found) -> Found:
    """Keep the last row of each (candidate, key), and of those only what is not removed."""
    k1, k2 = as_keys(found.rows.column("k1")), as_keys(found.rows.column("k2"))
    owner = found.candidate.astype(np.uint64)
    order = np.lexsort((np.arange(len(owner)), k2, k1, owner))
    same = (owner[order][1:] == owner[order][:-1]) & (k1[order][1:] == k1[order][:-1])
    same &= k2[order][1:] == k2[order][:-1]
    kept = order[np.append(~same, True)] if len(order) else order
    rows = found.rows.take(kept)
    if table.has_tombstones and rows.num_rows:
        alive = pc.invert(pc.fill_null(rows.column(REMOVED), False)).to_numpy()
        rows, kept = rows.filter(pa.array(alive)), kept[alive]
    return Found(rows, found.candidate[kept])
