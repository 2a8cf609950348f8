"""Rows of a table by value: the same as filtering the whole file, from a part of it."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from connectors.faults import DamagedFile
from connectors.files import Storage, open_storage
from connectors.table_lookup import rows_where
from connectors.tables import ROW_GROUP_ROWS, read_table, table_from_columns, write_table

PATH = "tables/duplicates/round=000001/part.parquet"
ROWS = 5_000


@pytest.fixture
def storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Storage:
    monkeypatch.setitem(ROW_GROUP_ROWS, "duplicates", 1_000)
    columns = {
        "url": [f"https://h{number % 7}.example/{number // 3:05d}" for number in range(ROWS)],
        "kept_url": [f"https://k.example/{number:05d}" for number in range(ROWS)],
        "kind": ["exact"] * ROWS,
        "similarity": [1.0] * ROWS,
    }
    target = tmp_path / PATH
    target.parent.mkdir(parents=True)
    write_table(target, "duplicates", table_from_columns("duplicates", columns))
    return open_storage(str(tmp_path))


@pytest.mark.parametrize("column", ["url", "kept_url"])
def test_the_rows_are_those_of_a_filter_over_the_whole_file(storage: Storage, column: str) -> None:
    whole = read_table(Path(storage.root) / PATH, "duplicates").to_pylist()
    for value in {whole[0][column], whole[2_345][column], whole[-1][column], "https://none.example/"}:
        found = rows_where(storage, PATH, "duplicates", column, value)
        assert found == [row for row in whole if row[column] == value]


def test_row_groups_that_cannot_hold_the_value_are_not_read(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    original = pq.ParquetFile.read_row_group

    def reading(self: pq.ParquetFile, group: int, **how: object) -> object:
        read.append(group)
        return original(self, group, **how)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", reading)
    assert len(rows_where(storage, PATH, "duplicates", "url", "https://h3.example/00001")) == 1
    assert len(set(read)) == 1
    assert rows_where(storage, PATH, "duplicates", "url", "https://a.example/") == []
    assert len(set(read)) == 1


def test_values_too_long_for_a_bound_are_found(tmp_path: Path) -> None:
    url = "https://h.example/" + "x" * 10_000
    row = {"url": [url], "kept_url": [url], "kind": ["near"], "similarity": [0.9]}
    write_table(tmp_path / "x.parquet", "duplicates", table_from_columns("duplicates", row))
    assert len(rows_where(open_storage(str(tmp_path)), "x.parquet", "duplicates", "url", url)) == 1


def test_a_file_that_is_gone_damaged_or_of_another_table_is_named(storage: Storage) -> None:
    with pytest.raises(DamagedFile, match=r"none\.parquet is missing"):
        rows_where(storage, "tables/none.parquet", "duplicates", "url", "u")
    with pytest.raises(DamagedFile, match="no file of the table captures, but of duplicates"):
        rows_where(storage, PATH, "captures", "url", "u")
    file = Path(storage.root) / PATH
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(DamagedFile, match=r"part\.parquet is damaged"):
        rows_where(storage, PATH, "duplicates", "url", "u")
