"""One run file: written in order, closed, digested, and only then published."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from connectors.files import Storage
from connectors.runs.keys import Keys, as_keys, is_sorted, last_of_each, sort_order
from connectors.runs.sealing import publish_sealed
from connectors.runs.table import MULTI, RunTable, conform, run_path
from schemas.manifest import FileEntry

ROW_GROUP_ROWS = 131_072
VALUED_GROUP_BYTES = 4 << 20


def write_run(
    storage: Storage,
    table: RunTable,
    partition: int,
    round_number: int,
    columns: pa.Table | Mapping[str, Any],
    *,
    level: int = 0,
    token: str,
) -> FileEntry:
    """Write rows in any order as one run and return its entry.

    ``columns`` holds k1, k2 and the values. Equal keys are kept once in a ``set``, the last given one
    in a ``newest_wins`` table, all in a ``multi`` table. The same rows give the same bytes. Raises
    ValueError when there are no rows, and what the storage raises when the path is taken.
    """
    rows = conform(columns, table.schema)
    k1, k2 = as_keys(rows.column("k1")), as_keys(rows.column("k2"))
    if not is_sorted(k1, k2):
        order = sort_order(k1, k2)
        k1, k2, rows = k1[order], k2[order], rows.take(order)
    if table.kind != MULTI and not is_sorted(k1, k2, strictly=True):
        rows = rows.filter(pa.array(last_of_each(k1, k2)))
    with RunWriter(storage, table, partition, round_number, level=level, token=token) as writer:
        writer.append(rows)
        return writer.finish()


class RunWriter:
    """Writes one run from sorted pieces, holding one row group in memory.

    Row groups hold at most 131,072 rows, and in a table with values about 4 MiB, so that a reader's
    memory is bounded by groups. Keys without values are not compressed, for they are random, save that
    k1 is a dictionary (8.1 bytes a key); values are zstd, and so is a table that names encodings. Use
    as a context manager: leaving it without ``finish`` publishes nothing.
    """

    def __init__(
        self,
        storage: Storage,
        table: RunTable,
        partition: int,
        round_number: int,
        *,
        level: int = 0,
        token: str,
    ) -> None:
        self._storage = storage
        self._table = table
        self._partition = partition
        self._level = level
        self.path = run_path(table.name, partition, round_number, level, token)
        self._local = Path(storage.scratch_path(self.path))
        self._writer = pq.ParquetWriter(self._local, table.schema, **_settings(table))
        self._pending: list[pa.Table] = []
        self._pending_rows = 0
        self._pending_bytes = 0
        self._min_key = 0
        self._last: tuple[int, int] | None = None
        self.rows = 0

    def __enter__(self) -> RunWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()
        self._local.unlink(missing_ok=True)

    @property
    def has_rows(self) -> bool:
        """Whether any row was appended."""
        return self._last is not None

    def append(self, rows: pa.Table) -> None:
        """Add rows of the table's schema. Raises ValueError when a key is out of order (or repeated, save in
        a ``multi`` table): a run that is not sorted would lose keys without a sign.
        """
        if rows.num_rows == 0:
            return
        self._check_order(as_keys(rows.column("k1")), as_keys(rows.column("k2")))
        self._pending.append(rows)
        self._pending_rows += rows.num_rows
        self._pending_bytes += rows.nbytes
        if self._pending_rows >= ROW_GROUP_ROWS or self._valued_full():
            self._flush(whole=False)

    def finish(self) -> FileEntry:
        """Close, publish and describe the run. Raises ValueError for a run without rows."""
        self._flush(whole=True)
        if self._last is None:
            raise ValueError(f"run {self.path} has no rows")
        self._writer.close()
        size, digest = publish_sealed(self._storage, self._local, self.path)
        return FileEntry(
            path=self.path,
            staged_path="",
            table=self._table.name,
            partition=self._partition,
            level=self._level,
            rows=self.rows,
            bytes=size,
            digest=digest,
            min_key=self._min_key,
            max_key=self._last[0],
        )

    def _check_order(self, k1: Keys, k2: Keys) -> None:
        strictly = self._table.kind != MULTI
        first = (int(k1[0]), int(k2[0]))
        joined = self._last is None or self._last < first or (not strictly and self._last == first)
        if not joined or not is_sorted(k1, k2, strictly):
            raise ValueError(f"rows for {self.path} are not in the order of their keys")
        if self._last is None:
            self._min_key = first[0]
        self._last = (int(k1[-1]), int(k2[-1]))

    def _valued_full(self) -> bool:
        return bool(self._table.value_names) and self._pending_bytes >= VALUED_GROUP_BYTES

    def _flush(self, whole: bool) -> None:
        """Write full row groups; ``whole`` writes the rest too."""
        if not self._pending:
            return
        rows = pa.concat_tables(self._pending)
        limit = self._group_rows(rows)
        start = 0
        while rows.num_rows - start >= (1 if whole else limit):
            self._write_group(rows.slice(start, limit))
            start += limit
        rest = rows.slice(start)
        self._pending = [rest] if rest.num_rows else []
        self._pending_rows, self._pending_bytes = rest.num_rows, rest.nbytes

    def _group_rows(self, rows: pa.Table) -> int:
        if not self._table.value_names:
            return ROW_GROUP_ROWS
        row_bytes = max(1.0, rows.nbytes / rows.num_rows)
        return max(1, min(ROW_GROUP_ROWS, int(VALUED_GROUP_BYTES / row_bytes)))

    def _write_group(self, rows: pa.Table) -> None:
        self._writer.write_table(rows, row_group_size=rows.num_rows)
        self.rows += rows.num_rows


def _settings(table: RunTable) -> dict[str, Any]:
    encoded = dict(table.encodings)
    dictionaries = table.schema.names if table.value_names else ["k1"]
    return {
        "compression": "zstd" if table.value_names or encoded else "none",
        "use_dictionary": [name for name in dictionaries if name not in encoded],
        "column_encoding": encoded or None,
        "dictionary_pagesize_limit": 2 << 20,
        "write_statistics": ["k1"],
        "write_page_checksum": True,
        "store_schema": True,
    }
