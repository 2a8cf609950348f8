"""Work files of a round: Parquet files with one row group a reader, so that only (name, number) travels.

A changed byte is noticed before it can give a wrong answer: pages and footer carry checksums.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq

from connectors.faults import DamagedFile
from connectors.files import Storage, digest_of
from connectors.runs import checked_footer, seal_footer
from connectors.sealed import read_checked


def write_parts(storage: Storage, path: str, parts: Iterable[pa.Table], schema: pa.Schema) -> list[int]:
    """Write each table as one row group, in order, and return their row counts.

    Empty tables take no row group of their own: leave them out before numbering. The file appears
    whole or not at all; a name that is taken raises what `Storage.publish` raises.
    """
    with storage.creating(path) as local:
        return _write(local, parts, schema)


def write_table(storage: Storage, path: str, table: pa.Table) -> int:
    """Write one table as one file and return its row count."""
    return sum(write_parts(storage, path, [table], table.schema))


def write_digested(storage: Storage, path: str, table: pa.Table) -> str:
    """Write one table as one file and return the file's BLAKE2b-128 digest, hex."""
    with storage.creating(path) as local:
        _write(local, [table], table.schema)
        with open(local, "rb") as written:
            return digest_of(written)


def read_part(storage: Storage, path: str, row_group: int, columns: Sequence[str] | None = None) -> pa.Table:
    """Return one row group of a work file; raise DamagedFile if it is gone or not what was written."""
    with _opened(storage, path) as parquet:
        return parquet.read_row_group(row_group, columns=list(columns) if columns else None)


def group_sizes(storage: Storage, path: str) -> list[int]:
    """Return the bytes that each row group of a work file takes, not compressed; DamagedFile as `read_part`."""
    with _opened(storage, path) as parquet:
        groups = range(parquet.metadata.num_row_groups)
        return [int(parquet.metadata.row_group(number).total_byte_size) for number in groups]


def read_whole(storage: Storage, path: str, columns: Sequence[str] | None = None) -> pa.Table:
    """Return all rows of a work file; raise DamagedFile if it is gone or not what was written."""
    with _opened(storage, path) as parquet:
        return parquet.read(columns=list(columns) if columns else None)


def read_digested(storage: Storage, path: str, digest: str) -> pa.Table:
    """Return all rows of a work file whose digest is known; raise DamagedFile if it is gone or another."""
    with pq.ParquetFile(io.BytesIO(read_checked(storage, path, digest))) as parquet:
        return parquet.read()


def _write(local: str, parts: Iterable[pa.Table], schema: pa.Schema) -> list[int]:
    rows: list[int] = []
    with pq.ParquetWriter(local, schema, compression="zstd", write_page_checksum=True) as writer:
        for part in parts:
            if part.num_rows:
                writer.write_table(part, row_group_size=part.num_rows)
                rows.append(part.num_rows)
    with open(local, "r+b") as file:
        seal_footer(file)
    return rows


@contextmanager
def _opened(storage: Storage, path: str) -> Iterator[pq.ParquetFile]:
    name = f"{storage.root}/{path}"
    try:
        with storage.open_read(path) as file:
            footer = checked_footer(file, name, file.seek(0, io.SEEK_END))
            with pq.ParquetFile(file, metadata=footer, page_checksum_verification=True) as parquet:
                yield parquet
    except FileNotFoundError as error:
        raise DamagedFile(f"{name} is missing") from error
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and (error.errno is not None or type(error) is not OSError):
            raise
        raise DamagedFile(f"{name} is damaged: {' '.join(str(error).split())}") from error
