"""Rows become tables and come back unchanged, for every row type that is kept in a file."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.rows import row_schema, rows_to_table, table_to_rows
from schemas.fetch import OutcomeRow
from schemas.manifest import FileEntry
from schemas.page import DuplicateVerdict, Link, Sketch
from schemas.state import DomainRules, HostState, RobotsState, UrlState

KEPT = [OutcomeRow, UrlState, HostState, RobotsState, DomainRules, Sketch, Link, DuplicateVerdict, FileEntry]


class Everything(NamedTuple):
    name: str
    url_key: int
    count: int
    score: float
    flag: bool
    body: bytes
    words: tuple[str, ...]
    hashes: tuple[int, ...]
    parts: tuple[bytes, ...]
    maybe_name: str | None = None
    maybe_count: int | None = None
    other_key: int | None = None
    maybe_score: float | None = None
    maybe_flag: bool | None = None
    maybe_body: bytes | None = None


U64 = st.integers(0, 2**64 - 1)
I64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
FLOAT = st.floats(allow_nan=False)
ROWS = st.lists(
    st.builds(
        Everything,
        TEXT,
        U64,
        I64,
        FLOAT,
        st.booleans(),
        st.binary(max_size=8),
        st.lists(TEXT, max_size=3).map(tuple),
        st.lists(U64, max_size=3).map(tuple),
        st.lists(st.binary(max_size=3), max_size=3).map(tuple),
        st.none() | TEXT,
        st.none() | I64,
        st.none() | U64,
        st.none() | FLOAT,
        st.none() | st.booleans(),
        st.none() | st.binary(max_size=8),
    ),
    max_size=6,
)


@given(ROWS)
def test_rows_come_back_as_they_went(rows: list[Everything]) -> None:
    table = rows_to_table(iter(rows), Everything)
    assert table.schema == row_schema(Everything)
    assert table_to_rows(table, Everything) == rows


def test_rows_survive_a_parquet_file(tmp_path) -> None:
    rows = [Everything("ä", 2**64 - 1, -1, 0.5, True, b"\0", ("a",), (2**64 - 1,), (b"x",))] * 3
    path = tmp_path / "rows.parquet"
    pq.write_table(rows_to_table(rows, Everything), path)
    assert table_to_rows(pq.read_table(path), Everything) == rows


@pytest.mark.parametrize("row_type", KEPT, ids=lambda kind: kind.__name__)
def test_every_kept_row_type_has_a_schema(row_type) -> None:
    assert row_schema(row_type).names == list(row_type._fields)
    assert rows_to_table([], row_type).num_rows == 0
    assert table_to_rows(rows_to_table([], row_type), row_type) == []


def test_keys_are_unsigned_and_only_optional_fields_are_nullable() -> None:
    schema = row_schema(UrlState)
    assert schema.field("url_key").type == pa.uint64()
    assert schema.field("depth").type == pa.int64()
    assert {field.name for field in schema if not field.nullable} >= {"url", "host_key", "in_pages"}
    assert schema.field("etag").nullable


def test_a_column_younger_than_the_file_takes_its_default() -> None:
    rows = [HostState("a.example", 1, "a.example"), HostState("b.example", 2, "b.example")]
    older = rows_to_table(rows, HostState).drop_columns(["urls_known", "bytes_mean"])
    older = older.append_column("dropped_since", pa.array([1, 2]))
    assert table_to_rows(older, HostState) == rows


def test_a_missing_column_without_default_is_refused() -> None:
    table = rows_to_table([HostState("a.example", 1, "a.example")], HostState).drop_columns(["host"])
    with pytest.raises(ValueError, match="column host of HostState is missing"):
        table_to_rows(table, HostState)


def test_text_that_utf8_cannot_carry_is_stored_all_the_same() -> None:
    rows = [Link("https://a.example/", "x\udc80y", "")]
    assert table_to_rows(rows_to_table(rows, Link), Link) == [Link("https://a.example/", "x?y", "")]


def test_an_annotation_without_a_column_type_is_refused() -> None:
    class Odd(NamedTuple):
        thing: dict[str, str]

    with pytest.raises(TypeError, match="thing"):
        row_schema(Odd)
