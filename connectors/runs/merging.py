"""Several runs as one sorted stream, in bounded memory: for scans, and for compaction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connectors.files import Storage
from connectors.runs.keys import Keys, as_keys, count_through, is_sorted, last_of_each, sort_order
from connectors.runs.reading import RunReader
from connectors.runs.table import MULTI, REMOVED, RunTable, conform, oldest_first
from connectors.runs.writing import RunWriter
from schemas.manifest import FileEntry


def scan(storage: Storage, table: RunTable, runs: Sequence[FileEntry]) -> Iterator[pa.Table]:
    """Yield all rows of the runs of one partition, sorted by (k1, k2), in tables of bounded size.

    Set and newest_wins: each key once, with its youngest row; tombstoned keys are left out. Multi: every
    row, those of older runs first within a row group's reach. Memory: one row group a run. Raises DamagedRun.
    """
    yield from _merged(storage, table, runs, keep_removed=False)


def merge_runs(
    storage: Storage,
    table: RunTable,
    runs: Sequence[FileEntry],
    partition: int,
    round_number: int,
    *,
    level: int,
    token: str,
    oldest: bool = False,
) -> FileEntry | None:
    """Write one run with the rows of these and return its entry; the old files stay as they are.

    ``oldest`` says that the partition has no run older than these, so that tombstones can be dropped; then
    the answer is None when nothing is left. Memory: one row group a run and one for the output. The same
    runs give the same bytes. Raises DamagedRun, and what the storage raises when the path is taken.
    """
    with RunWriter(storage, table, partition, round_number, level=level, token=token) as writer:
        for rows in _merged(storage, table, runs, keep_removed=not oldest):
            writer.append(rows)
        return writer.finish() if writer.has_rows else None


class _Cursor:
    """One run, read row group by row group; ``rows`` from ``at`` on are not yet taken."""

    def __init__(self, run: RunReader, table: RunTable) -> None:
        self._run = run
        self._table = table
        self._next_group = 0
        self._rows: pa.Table = table.schema.empty_table()
        self._k1: Keys = as_keys([])
        self._k2: Keys = as_keys([])
        self._load()

    @property
    def is_last(self) -> bool:
        return self._next_group == self._run.groups

    @property
    def end(self) -> tuple[int, int]:
        return int(self._k1[-1]), int(self._k2[-1])

    def take(self, bound: tuple[int, int] | None) -> pa.Table:
        """Return the rows up to and with ``bound`` (None: all that are loaded) and step behind them."""
        stop = len(self._k1) if bound is None else count_through(self._k1, self._k2, *bound)
        taken = self._rows.slice(0, stop)
        self._rows, self._k1, self._k2 = self._rows.slice(stop), self._k1[stop:], self._k2[stop:]
        return taken

    def refill(self) -> bool:
        """Load the next row group if all rows are taken; return whether there are rows."""
        if len(self._k1) == 0 and not self.is_last:
            self._load()
        return len(self._k1) > 0

    def _load(self) -> None:
        self._rows = conform(self._run.rows([self._next_group]), self._table.schema)
        self._k1, self._k2 = as_keys(self._rows.column("k1")), as_keys(self._rows.column("k2"))
        self._next_group += 1


def _merged(
    storage: Storage, table: RunTable, runs: Sequence[FileEntry], keep_removed: bool
) -> Iterator[pa.Table]:
    """Yield the merged rows. Each turn takes from every run what is not above the least loaded end."""
    with ExitStack() as opened:
        readers = [opened.enter_context(RunReader(storage, run)) for run in oldest_first(table, runs)]
        cursors = [_Cursor(reader, table) for reader in readers]
        while cursors:
            ends = [cursor.end for cursor in cursors if not cursor.is_last]
            bound = min(ends, default=None)
            rows = _settled(table, [cursor.take(bound) for cursor in cursors], keep_removed)
            if rows.num_rows:
                yield rows
            cursors = [cursor for cursor in cursors if cursor.refill()]


def _settled(table: RunTable, parts: list[pa.Table], keep_removed: bool) -> pa.Table:
    """Return the parts, given oldest first, as sorted rows of which each key's youngest is kept."""
    rows = pa.concat_tables(parts).combine_chunks()
    k1, k2 = as_keys(rows.column("k1")), as_keys(rows.column("k2"))
    if not is_sorted(k1, k2, strictly=table.kind != MULTI):
        order = sort_order(k1, k2)
        if table.kind != MULTI:
            order = order[np.flatnonzero(last_of_each(k1[order], k2[order]))]
        rows = rows.take(order)
    if table.has_tombstones and not keep_removed:
        rows = rows.filter(pc.invert(pc.fill_null(rows.column(REMOVED), False)))
    return rows
