"""Rows of a public table by one value: reads the row groups that can hold it, not the file."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from connectors.faults import DamagedFile
from connectors.files import Storage, StorageError
from connectors.tables import TABLE_KEY


def rows_where(storage: Storage, path: str, table: str, column: str, value: str) -> list[dict[str, Any]]:
    """Return the rows of one file whose text column has this value, as members by column name, in order.

    Quick on the column that a table is sorted by, right on any. Files of every schema version can be read;
    a column that a version lacks is absent. Raises DamagedFile, naming it, for a file that is gone, does
    not read, or holds another table; StorageError when the storage refuses.
    """
    name = f"{storage.root}/{path}"
    try:
        with storage.open_read(path) as source, pq.ParquetFile(source) as file:
            found = (file.schema_arrow.metadata or {}).get(TABLE_KEY, b"?").decode()
            if found != table or column not in file.schema_arrow.names:
                raise DamagedFile(f"{name} is damaged: it is no file of the table {table}, but of {found}")
            rows: list[dict[str, Any]] = []
            for group in _groups_with(file.metadata, column, value):
                rows += _matches(file, group, column, value)
            return rows
    except FileNotFoundError as error:
        raise DamagedFile(f"{name} is missing") from error
    except StorageError:
        raise
    except (pa.ArrowException, OSError) as error:
        raise DamagedFile(f"{name} is damaged: {error}") from error


def _groups_with(footer: Any, column: str, value: str) -> list[int]:
    """Return the row groups whose bounds admit the value; those without bounds, too."""
    place = footer.schema.names.index(column)
    groups = []
    for number in range(footer.num_row_groups):
        bounds = footer.row_group(number).column(place).statistics
        if bounds is None or not bounds.has_min_max or bounds.min <= value <= bounds.max:
            groups.append(number)
    return groups


def _matches(file: Any, group: int, column: str, value: str) -> list[dict[str, Any]]:
    wanted = pc.equal(file.read_row_group(group, columns=[column]).column(0), value)
    if not pc.any(wanted).as_py():
        return []
    found: list[dict[str, Any]] = file.read_row_group(group).filter(wanted).to_pylist()
    return found
