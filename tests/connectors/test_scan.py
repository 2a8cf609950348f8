"""Columns of committed files, in batches: what a summary reads, and what it says of a file that is not right."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from connectors import calendar, scan
from connectors.faults import DamagedFile
from connectors.files import Storage, open_storage
from connectors.tables import ROW_GROUP_ROWS, table_from_columns, write_table
from schemas.manifest import FileEntry
from schemas.state import UrlState

PATH = "tables/duplicates/round=000001/part.parquet"
STAGED = f"rounds/000001/staged/{PATH}"
ROWS = 2_500


def entry(path: str = PATH, staged: str = "", table: str = "duplicates") -> FileEntry:
    return FileEntry(path, staged, table, 0, 0, ROWS, 1, "")


@pytest.fixture
def storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Storage:
    monkeypatch.setitem(ROW_GROUP_ROWS, "duplicates", 1_000)
    write(tmp_path / PATH)
    return open_storage(str(tmp_path))


def write(target: Path) -> None:
    target.parent.mkdir(parents=True)
    columns = {
        "url": [f"https://h.example/{number:05d}" for number in range(ROWS)],
        "kept_url": ["https://k.example/"] * ROWS,
        "kind": ["exact", "near"] * (ROWS // 2),
        "similarity": [1.0, 0.9] * (ROWS // 2),
    }
    write_table(target, "duplicates", table_from_columns("duplicates", columns))


def test_batches_hold_the_columns_asked_for_in_their_order(storage: Storage) -> None:
    batches = list(scan.table_batches(storage, entry(), ["similarity", "url"], 1_000))
    assert [batch.num_rows for batch in batches] == [1_000, 1_000, 500]
    whole = pa.concat_tables(batches)
    assert whole.column_names == ["similarity", "url"]
    assert whole.column("url").to_pylist() == [f"https://h.example/{number:05d}" for number in range(ROWS)]
    assert whole.column("similarity").to_pylist()[:2] == [1.0, 0.9]


def test_a_file_that_was_not_yet_published_is_read_where_it_is_staged(tmp_path: Path) -> None:
    write(tmp_path / STAGED)
    storage = open_storage(str(tmp_path))
    staged = entry(staged=STAGED)
    assert scan.place_of(storage, staged) == STAGED
    assert sum(batch.num_rows for batch in scan.table_batches(storage, staged, ["kind"])) == ROWS
    storage.move(STAGED, PATH)
    assert scan.place_of(storage, staged) == PATH
    assert sum(batch.num_rows for batch in scan.table_batches(storage, staged, ["kind"])) == ROWS


def test_a_column_that_an_older_file_lacks_is_null(storage: Storage) -> None:
    target = Path(storage.root) / PATH
    whole = pq.read_table(target)
    pq.write_table(whole.drop_columns(["similarity"]), target)
    batches = list(scan.table_batches(storage, entry(), ["similarity", "kind"]))
    whole = pa.concat_tables(batches)
    assert whole.column("similarity").null_count == ROWS == len(whole.column("kind"))
    assert whole.schema.field("similarity").type == pa.float64()


def test_what_is_wrong_with_a_file_is_said_with_its_name(storage: Storage) -> None:
    with pytest.raises(DamagedFile, match=r"gone\.parquet is missing"):
        list(scan.table_batches(storage, entry("gone.parquet"), ["kind"]))
    with pytest.raises(DamagedFile, match="no file of the table removed, but of duplicates"):
        list(scan.table_batches(storage, entry(table="removed"), ["reason"]))
    target = Path(storage.root) / PATH
    target.write_bytes(target.read_bytes()[:-20])
    with pytest.raises(DamagedFile, match=f"{PATH} is damaged"):
        list(scan.table_batches(storage, entry(), ["kind"]))


def test_state_files_are_read_by_row_groups(storage: Storage) -> None:
    rows = [
        UrlState(f"https://h.example/{key}", 7, key, "fetched", 1e9 + key, 0, 0.5, None, 1, 1e9)
        for key in range(100)
    ]
    (written,) = calendar.write_slots(storage, 0, 1, rows, 1e9, "aa")
    batches = list(scan.state_batches(storage, written, ["priority", "next_fetch_at"]))
    whole = pa.concat_tables(batches)
    assert sorted(whole.column("next_fetch_at").to_pylist()) == [1e9 + key for key in range(100)]
