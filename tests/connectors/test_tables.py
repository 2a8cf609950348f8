"""Public tables as files, and what other readers see of them."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from connectors.tables import (
    UnknownSchema,
    arrow_schema,
    read_table,
    table_from_columns,
    table_from_rows,
    write_table,
)
from connectors.warc_records import warc_date
from schemas.tables import TABLES

REMOVED = [
    {"url": "https://b.example/", "reason": "gone", "removed_at": 1_764_500_000.123456},
    {"url": "https://a.example/", "reason": "noindex", "removed_at": 0.0},
]


def capture_row(url: str, **facts: Any) -> dict[str, Any]:
    """Return a row of captures with the facts that every URL has."""
    return {
        "url_surtkey": url,
        "url": url,
        "url_host_name": "a.example",
        "url_protocol": "https",
        "url_path": "/",
        "crawl": "toy",
        "kind": "planned",
        "outcome": "deferred",
        "depth": 0,
        "priority": 0.5,
        "retries": 0,
        **facts,
    }


def file_of(table: str, data: pa.Table) -> io.BytesIO:
    file = io.BytesIO()
    write_table(file, table, data)
    return io.BytesIO(file.getvalue())


@pytest.mark.parametrize("table", TABLES)
def test_every_table_has_a_schema_and_can_be_empty(table: str) -> None:
    empty = table_from_rows(table, [])
    assert empty.schema == arrow_schema(table)
    assert read_table(file_of(table, empty), table).schema.equals(arrow_schema(table))


def test_rows_come_back_sorted_with_times_in_utc(tmp_path: Path) -> None:
    assert write_table(tmp_path / "x.parquet", "removed", table_from_rows("removed", REMOVED)) == 2
    back = read_table(tmp_path / "x.parquet", "removed").to_pylist()
    assert [row["url"] for row in back] == ["https://a.example/", "https://b.example/"]
    assert back[0]["removed_at"] == datetime(1970, 1, 1, tzinfo=UTC)
    assert back[1]["removed_at"] == datetime(2025, 11, 30, 10, 53, 20, 123456, tzinfo=UTC)


def test_times_are_rounded_as_in_warc_dates() -> None:
    row = {**REMOVED[0], "removed_at": 1764500000.1000009}
    (back,) = table_from_rows("removed", [row]).column("removed_at").to_pylist()
    assert f"{back:%Y-%m-%dT%H:%M:%S.%fZ}" == warc_date(1764500000.1000009) == "2025-11-30T10:53:20.100001Z"


def test_the_same_rows_in_any_order_give_the_same_bytes() -> None:
    files = [file_of("removed", table_from_rows("removed", rows)) for rows in (REMOVED, REMOVED[::-1])]
    assert files[0].getvalue() == files[1].getvalue()


def test_files_are_zstd_in_row_groups_and_say_how_they_are_sorted(tmp_path: Path) -> None:
    rows = [capture_row(f"https://a.example/{number:06d}") for number in range(70_000)]
    write_table(tmp_path / "x.parquet", "captures", table_from_rows("captures", rows))
    metadata = pq.ParquetFile(tmp_path / "x.parquet").metadata
    assert metadata.num_row_groups == 2
    assert metadata.row_group(0).column(0).compression == "ZSTD"
    assert [column.column_index for column in metadata.row_group(0).sorting_columns] == [0, 1]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"url": ["u"], "reason": ["gone"]}, "column removed_at of removed lacks values"),
        ({"url": ["u"], "reason": [None], "removed_at": [1.0]}, "column reason of removed lacks values"),
        ({"url": ["u"], "resaon": ["gone"], "removed_at": [1.0]}, "removed has no column resaon"),
    ],
)
def test_columns_that_are_not_the_tables_are_refused(columns: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        table_from_columns("removed", columns)


def test_columns_of_unequal_length_are_refused() -> None:
    with pytest.raises((ValueError, pa.ArrowInvalid)):
        table_from_columns("removed", {"url": ["u", "v"], "reason": ["gone"], "removed_at": [1.0]})


def test_a_table_with_other_columns_is_not_written() -> None:
    with pytest.raises(ValueError, match="needs the columns"):
        write_table(io.BytesIO(), "removed", pa.table({"url": ["u"]}))
    with pytest.raises(ValueError, match="null"):
        nulls = pa.table({"url": [None], "reason": ["x"], "removed_at": [None]})
        write_table(io.BytesIO(), "removed", nulls)


def test_another_version_or_table_is_refused() -> None:
    table = table_from_rows("removed", REMOVED)
    with pytest.raises(UnknownSchema, match="not a file of the table links, but of removed"):
        read_table(file_of("removed", table), "links")
    later = io.BytesIO()
    metadata = {**table.schema.metadata, b"roundcrawl.schema_version": b"99"}
    pq.write_table(table.replace_schema_metadata(metadata), later)
    with pytest.raises(UnknownSchema, match="version 99"):
        read_table(later, "removed")
    foreign = io.BytesIO()
    pq.write_table(pa.table({"url": ["u"]}), foreign)
    with pytest.raises(UnknownSchema):
        read_table(foreign, "removed")


def test_some_columns_can_be_read_alone() -> None:
    file = file_of("removed", table_from_rows("removed", REMOVED))
    assert read_table(file, "removed", ["url"]).column_names == ["url"]


def test_duckdb_reads_types_and_partitions(tmp_path: Path) -> None:
    for number in (1, 2):
        folder = tmp_path / "captures" / f"round={number:06d}"
        folder.mkdir(parents=True)
        fetched = capture_row(
            f"https://a.example/{number}", outcome="fetched", fetch_status=200, fetch_time=1.5
        )
        rows = [fetched, capture_row("https://a.example/later")]
        write_table(folder / "x.parquet", "captures", table_from_rows("captures", rows))
    glob = f"{tmp_path}/captures/*/*.parquet"
    database = duckdb.connect()
    counts = database.sql(
        f"SELECT round, outcome, count(*) FROM '{glob}' GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    assert [(int(number), outcome, rows) for number, outcome, rows in counts] == [
        *((1, "deferred", 1), (1, "fetched", 1), (2, "deferred", 1), (2, "fetched", 1))
    ]
    kinds = dict(
        database.sql(f"SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM '{glob}')").fetchall()
    )
    assert kinds["fetch_status"] == "SMALLINT"
    assert kinds["warc_record_offset"] == "INTEGER"
    assert kinds["fetch_time"] == "TIMESTAMP WITH TIME ZONE"
    assert kinds["depth"] == "BIGINT"
