"""What a table of sorted runs is: its name, its value columns, and what a repeated key means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from connectors import layout
from schemas.manifest import FileEntry

SET = "set"
NEWEST_WINS = "newest_wins"
MULTI = "multi"
REMOVED = "removed"


@dataclass(frozen=True)
class RunTable:
    """A table kept as immutable runs, each sorted by the unsigned 64-bit pair (k1, k2).

    ``kind`` says what a repeated key means. ``set``: the same key again, kept once, no values.
    ``newest_wins``: the row of the youngest run counts; a boolean value column named ``removed`` marks a
    tombstone, which hides older rows and is dropped when no older run is left. ``multi``: every row
    counts. ``values`` are Arrow fields other than k1 and k2. ``encodings`` names the Parquet encoding of
    columns that are smaller so than with a dictionary; a table that has any is compressed throughout.
    Raises ValueError for a bad combination.
    """

    name: str
    kind: str = SET
    values: pa.Schema | None = None
    encodings: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in (SET, NEWEST_WINS, MULTI):
            raise ValueError(f"kind of table {self.name} must be set, newest_wins or multi, got {self.kind}")
        names = self.value_names
        if self.kind == SET and names:
            raise ValueError(f"table {self.name} is a set and can have no values, got {names}")
        if {"k1", "k2"} & set(names):
            raise ValueError(f"table {self.name} has a value column named k1 or k2")
        if REMOVED in names and not (self.kind == NEWEST_WINS and self._removed_is_bool()):
            raise ValueError(f"removed in table {self.name} must be a boolean of a newest_wins table")

    @property
    def value_names(self) -> list[str]:
        """The names of the value columns, in order."""
        return [] if self.values is None else list(self.values.names)

    @property
    def schema(self) -> pa.Schema:
        """The columns of a run: k1, k2, then the values."""
        keys = [pa.field("k1", pa.uint64(), nullable=False), pa.field("k2", pa.uint64(), nullable=False)]
        return pa.schema(keys if self.values is None else [*keys, *self.values])

    @property
    def has_tombstones(self) -> bool:
        """Whether rows can be marked as removed."""
        return REMOVED in self.value_names

    def _removed_is_bool(self) -> bool:
        return self.values is not None and bool(pa.types.is_boolean(self.values.field(REMOVED).type))


def conform(columns: pa.Table | Mapping[str, Any], schema: pa.Schema) -> pa.Table:
    """Return the columns as a table of exactly this schema; a missing nullable column becomes nulls.

    So a run from before a column was added stays readable. Raises ValueError for a missing column that
    cannot be null or a null where none is allowed, and what Arrow raises for a value of the wrong type.
    """
    given = columns if isinstance(columns, pa.Table) else pa.table(dict(columns))
    arrays = [_column(given, field) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def _column(given: pa.Table, field: pa.Field) -> Any:
    if field.name not in given.column_names:
        if not field.nullable:
            raise ValueError(f"column {field.name} is missing")
        return pa.nulls(given.num_rows, field.type)
    column = given.column(field.name).cast(field.type)
    if column.null_count and not field.nullable:
        raise ValueError(f"column {field.name} holds {column.null_count} nulls and may hold none")
    return column


def oldest_first(table: RunTable, runs: Sequence[FileEntry]) -> list[FileEntry]:
    """Return the runs of one partition by age: higher levels are older, then lower rounds.

    The order is total for ``newest_wins``: raises ValueError when two runs share level and round, for
    then nothing says which row is newer.
    """
    ordered = sorted(runs, key=lambda run: (-run.level, round_of(run), run.path))
    if table.kind == NEWEST_WINS:
        ages = [(run.level, round_of(run)) for run in ordered]
        if len(set(ages)) < len(ages):
            raise ValueError(
                f"two runs of {table.name} are of one level and round: {[r.path for r in ordered]}"
            )
    return ordered


def round_of(run: FileEntry) -> int:
    """Return the number of the round that wrote a run, from its name ``r000412-l0-TOKEN.parquet``."""
    return int(run.path.rpartition("/")[2].split("-")[0].removeprefix("r"))


def run_path(table: str, partition: int, round_number: int, level: int, token: str) -> str:
    """Return ``state/TABLE/p=0137/r000412-l0-TOKEN.parquet``."""
    return layout.state_path(table, partition, f"r{round_number:06d}-l{level}-{token}.parquet")
