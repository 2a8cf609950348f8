"""Columns of a round's Parquet files, a batch at a time: what a summary of large tables reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from connectors.faults import DamagedFile
from connectors.files import Storage, StorageError
from connectors.runs import SealedFile
from connectors.tables import TABLE_KEY, arrow_schema
from schemas.manifest import FileEntry

BATCH_ROWS = 65_536


def place_of(storage: Storage, entry: FileEntry) -> str:
    """Return where a committed file lies now: under its own name, or staged if its publication was cut."""
    if entry.staged_path and not storage.exists(entry.path):
        return entry.staged_path
    return entry.path


def table_batches(
    storage: Storage, entry: FileEntry, columns: Sequence[str], batch_rows: int = BATCH_ROWS
) -> Iterator[pa.Table]:
    """Yield these columns of one file of a public table, at most ``batch_rows`` rows at a time, in order.

    Memory is that of one row group of the columns named. A column that an older schema version lacks is null.
    Raises DamagedFile, naming the file, when it is gone, does not read, or holds another table;
    StorageError when the storage refuses.
    """
    wanted = [arrow_schema(entry.table).field(name) for name in columns]
    path = place_of(storage, entry)
    name = f"{storage.root}/{path}"
    try:
        with storage.open_read(path) as source, pq.ParquetFile(source) as file:
            found = (file.schema_arrow.metadata or {}).get(TABLE_KEY, b"?").decode()
            if found != entry.table:
                raise DamagedFile(
                    f"{name} is damaged: it is no file of the table {entry.table}, but of {found}"
                )
            present = [field.name for field in wanted if field.name in file.schema_arrow.names]
            for batch in file.iter_batches(batch_rows, columns=present):
                yield _with_all(batch, wanted)
    except FileNotFoundError as error:
        raise DamagedFile(f"{name} is missing") from error
    except StorageError:
        raise
    except (pa.ArrowException, OSError) as error:
        raise DamagedFile(f"{name} is damaged: {error}") from error


def state_batches(storage: Storage, entry: FileEntry, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Yield these columns of one state file, a row group at a time. Raises DamagedRun."""
    with SealedFile(storage, entry) as file:
        for group in range(len(file.group_rows)):
            yield file.rows([group], list(columns))


def _with_all(batch: Any, wanted: Sequence[Any]) -> pa.Table:
    columns = [
        batch.column(field.name).cast(field.type)
        if field.name in batch.schema.names
        else pa.nulls(batch.num_rows, field.type)
        for field in wanted
    ]
    return pa.Table.from_arrays(columns, names=[field.name for field in wanted])
