"""The public tables as Parquet files: sorted, compressed, and stamped with the version of their columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from connectors.rows import column_array
from schemas.tables import SCHEMA_VERSION, TABLES

VERSION_KEY = b"roundcrawl.schema_version"
TABLE_KEY = b"roundcrawl.table"

ROW_GROUP_ROWS = {"pages": 4_096, "links": 262_144}
"""Rows a row group; pages are few, for each holds a text of several kilobytes."""
DEFAULT_ROW_GROUP_ROWS = 65_536

_TIMESTAMP = pa.timestamp("us", tz="UTC")
_TYPES = {
    "string": pa.string(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "double": pa.float64(),
    "bool": pa.bool_(),
    "timestamp": _TIMESTAMP,
    "list<string>": pa.list_(pa.string()),
}


class UnknownSchema(ValueError):
    """A file is not the table that was asked for, or of a version that this program does not know."""


def arrow_schema(table: str) -> pa.Schema:
    """Return the Arrow schema of a public table, with its name and version as metadata."""
    fields = [pa.field(c.name, _TYPES[c.type], c.nullable) for c in TABLES[table].columns]
    return pa.schema(fields, {TABLE_KEY: table.encode(), VERSION_KEY: str(SCHEMA_VERSION).encode()})


def table_from_columns(table: str, columns: Mapping[str, Sequence[Any]]) -> pa.Table:
    """Return a table of whole columns; instants are UTC epoch seconds, rounded to microseconds.

    A nullable column that is not given is null. Raises ValueError for an unknown column, a missing one,
    columns of unequal length, or None where no null belongs.
    """
    schema = arrow_schema(table)
    if unknown := sorted(set(columns) - set(schema.names)):
        raise ValueError(f"{table} has no column {', '.join(unknown)}")
    rows = max(map(len, columns.values()), default=0)
    arrays = [_array(columns.get(field.name, [None] * rows), field) for field in schema]
    return _checked(pa.Table.from_arrays(arrays, schema=schema), table)


def table_from_rows(table: str, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Return a table of rows by column name; what a row does not name is null. Raises as above."""
    listed = list(rows)
    names = {name for row in listed for name in row}
    return table_from_columns(table, {name: [row.get(name) for row in listed] for name in names})


def write_table(target: Path | BinaryIO, table: str, data: pa.Table) -> int:
    """Write a public table as one Parquet file, sorted by the table's sort columns; return its row count.

    zstd, row groups of a fixed number of rows, page index, version in the file's metadata. The same rows
    in any order give the same bytes if no two rows agree in all sort columns. Raises ValueError when the
    columns are not exactly those of the table.
    """
    schema = arrow_schema(table)
    if data.schema.names != schema.names:
        raise ValueError(f"{table} needs the columns {schema.names}, not {data.schema.names}")
    order = [(name, "ascending") for name in TABLES[table].sort_by]
    data = _checked(data.cast(schema), table).sort_by(order).replace_schema_metadata(schema.metadata)
    pq.write_table(
        data,
        target,
        row_group_size=ROW_GROUP_ROWS.get(table, DEFAULT_ROW_GROUP_ROWS),
        compression="zstd",
        sorting_columns=pq.SortingColumn.from_ordering(schema, order),
        write_page_index=True,
    )
    return int(data.num_rows)


def read_table(source: Path | BinaryIO, table: str, columns: Sequence[str] | None = None) -> pa.Table:
    """Return a public table, or some of its columns, from one file. Raises UnknownSchema for another file."""
    with pq.ParquetFile(source) as file:
        metadata = file.schema_arrow.metadata or {}
        name, version = metadata.get(TABLE_KEY, b"?").decode(), metadata.get(VERSION_KEY, b"?").decode()
        if name != table:
            raise UnknownSchema(f"not a file of the table {table}, but of {name}")
        if version != str(SCHEMA_VERSION):
            raise UnknownSchema(f"{table} has schema version {version}; this program reads {SCHEMA_VERSION}")
        return file.read(columns=list(columns) if columns is not None else None)


def _array(values: Sequence[Any], field: Any) -> Any:
    if field.type != _TIMESTAMP:
        return column_array(values, field.type)
    seconds = pa.array(values, type=pa.float64())
    return pc.round(pc.multiply(seconds, 1e6)).cast(pa.int64()).cast(_TIMESTAMP)


def _checked(data: pa.Table, table: str) -> pa.Table:
    for field in data.schema:
        if not field.nullable and data.column(field.name).null_count:
            raise ValueError(f"column {field.name} of {table} lacks values")
    return data
