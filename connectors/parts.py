"""Work files of a round: Parquet files with one row group a reader, so that only (name, number) travels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from connectors.files import Storage, digest_of


def write_parts(storage: Storage, path: str, parts: Iterable[pa.Table], schema: pa.Schema) -> list[int]:
    """Write each table as one row group, in order, and return their row counts.

    Empty tables take no row group of their own: leave them out before numbering. The file appears
    whole or not at all; a name that is taken raises what `Storage.publish` raises.
    """
    rows: list[int] = []
    with storage.creating(path) as local, pq.ParquetWriter(local, schema, compression="zstd") as writer:
        for part in parts:
            if part.num_rows:
                writer.write_table(part, row_group_size=part.num_rows)
                rows.append(part.num_rows)
    return rows


def write_table(storage: Storage, path: str, table: pa.Table) -> int:
    """Write one table as one file and return its row count."""
    return sum(write_parts(storage, path, [table], table.schema))


def write_digested(storage: Storage, path: str, table: pa.Table) -> str:
    """Write one table as one file and return the file's BLAKE2b-128 digest, hex."""
    with storage.creating(path) as local:
        with pq.ParquetWriter(local, table.schema, compression="zstd") as writer:
            if table.num_rows:
                writer.write_table(table)
        with open(local, "rb") as written:
            return digest_of(written)


def read_part(storage: Storage, path: str, row_group: int, columns: Sequence[str] | None = None) -> pa.Table:
    """Return one row group of a work file."""
    with storage.open_read(path) as file, pq.ParquetFile(file) as parquet:
        return parquet.read_row_group(row_group, columns=list(columns) if columns else None)


def read_whole(storage: Storage, path: str, columns: Sequence[str] | None = None) -> pa.Table:
    """Return all rows of a work file."""
    with storage.open_read(path) as file, pq.ParquetFile(file) as parquet:
        return parquet.read(columns=list(columns) if columns else None)
