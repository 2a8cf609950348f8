"""How the steps of the content gate hand rows to each other: files of row groups, and references to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from apache_beam import coders

from connectors import parts
from connectors.rows import row_schema
from crawler.fingerprints import digest_numbers
from schemas.page import DuplicateVerdict, KeptRow, SketchRow
from transforms.gate.view import GateView

DIGEST_BYTES = 16
PAGES_A_TASK = 16_384
ROWS_A_FILE = 65_536


class GatePart(NamedTuple):
    """A row group for task number ``task`` of ``tasks``; ``kind`` names the schema and the purpose."""

    kind: str
    tasks: int
    task: int
    path: str
    row_group: int


coders.registry.register_coder(GatePart, coders.RowCoder)


def _key(name: str) -> pa.Field:
    return pa.field(name, pa.uint64(), nullable=False)


_SEGMENT = pa.field("segment", pa.string(), nullable=False)
_DIGEST = pa.field("text_digest", pa.binary(), nullable=False)
_SIGNATURE = pa.field("signature", pa.binary(), nullable=False)
_KEPT = [
    pa.field("kept_url", pa.string(), nullable=False),
    pa.field("kept_key", pa.uint64(), nullable=False),
    pa.field("similarity", pa.float64(), nullable=False),
    pa.field("kind", pa.string(), nullable=False),
]

# A text is called by the first 64 bits of its digest (``text``) while a round compares it.
SCHEMAS: dict[str, pa.Schema] = {
    "docs": row_schema(SketchRow).append(_SEGMENT),
    "pages": row_schema(SketchRow).append(_SEGMENT).append(pa.field("canonical", pa.int64(), nullable=False)),
    "bands": pa.schema([_key("bucket"), _key("text"), _SIGNATURE]),
    "queries": pa.schema([_key("page_id"), _key("text"), _DIGEST, _SIGNATURE]),
    "edges": pa.schema([_key("one"), _key("other")]),
    "labels": pa.schema([_key("text"), _key("label")]),
    "stored": pa.schema([_key("text"), *_KEPT]),
    "members": row_schema(SketchRow)
    .append(pa.field("canonical", pa.int64(), nullable=False))
    .append(_key("label")),
    "links": pa.schema([_key("text"), _key("label"), *_KEPT]),
    "fates": pa.schema([_key("host_key"), _key("url_key"), *_KEPT]),
    "crowded": pa.schema([_key("bucket"), pa.field("stored", pa.int64(), nullable=False)]),
    "entries": pa.schema([_key("bucket"), _key("page_id")]),
    "verdicts": row_schema(DuplicateVerdict).append(_SEGMENT),
    "sketches": row_schema(KeptRow),
}


def tasks_for(pages: int, partitions: int) -> int:
    """Return among how many tasks a step is dealt: a power of two, at most the partitions.

    A small round is one task, for the row groups that tasks hand to each other grow with their square.
    """
    tasks = 1
    while tasks < partitions and tasks * PAGES_A_TASK < pages:
        tasks *= 2
    return tasks


class Task(NamedTuple):
    """One task of a step: its number, and the partitions of the index that are its own."""

    tasks: int
    number: int

    def partitions(self, partitions: int) -> range:
        """Return the partitions of this task."""
        share = partitions // self.tasks
        return range(self.number * share, (self.number + 1) * share)


class Given:
    """The parts that a task was given, read by kind."""

    def __init__(self, view: GateView, given: Iterable[GatePart]) -> None:
        self._view = view
        self._parts = sorted(given)

    def table(self, kind: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Return all rows of a kind. Their order depends on file names: sort before it matters."""
        schema = SCHEMAS[kind]
        if columns is not None:
            schema = pa.schema([schema.field(name) for name in columns])
        tables = [
            parts.read_part(self._view.storage, part.path, part.row_group, columns)
            for part in self._parts
            if part.kind == kind
        ]
        return pa.concat_tables([schema.empty_table(), *tables]).combine_chunks()


def deal(view: GateView, kind: str, tasks: int, rows: pa.Table, shares: np.ndarray) -> Iterator[GatePart]:
    """Write rows to one file, a row group for each task that gets some, and yield the references.

    ``shares`` holds the number of the task for each row.
    """
    if not rows.num_rows:
        return
    order = np.argsort(shares, kind="stable")
    numbers, starts = np.unique(shares[order], return_index=True)
    ends = np.r_[starts[1:], len(order)]
    path = view.work_path(f"gate-{kind}")
    rows = rows.select(SCHEMAS[kind].names).cast(SCHEMAS[kind])
    groups = (rows.take(order[start:end]) for start, end in zip(starts.tolist(), ends.tolist(), strict=True))
    parts.write_parts(view.storage, path, groups, SCHEMAS[kind])
    for row_group, number in enumerate(numbers.tolist()):
        yield GatePart(kind, tasks, int(number), path, row_group)


def byte_matrix(column: pa.ChunkedArray, width: int) -> np.ndarray:
    """Return a column of byte strings, all of one width, as the rows of a matrix."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if not len(array):
        return np.zeros((0, width), dtype=np.uint8)
    fixed = array.cast(pa.binary(width))
    data = np.frombuffer(fixed.buffers()[1], dtype=np.uint8)
    start = fixed.offset * width
    return data[start : start + len(fixed) * width].reshape(-1, width)


def text_numbers(table: pa.Table) -> np.ndarray:
    """Return what the text of each row is called while the round compares it."""
    return digest_numbers(byte_matrix(table.column("text_digest"), DIGEST_BYTES))


def numbers(table: pa.Table, name: str) -> np.ndarray:
    """Return a column of numbers as an array."""
    return table.column(name).to_numpy()
