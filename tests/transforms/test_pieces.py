"""A segment's rows and pages in pieces: together they are the whole, in order, each within its bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors import parts
from connectors.files import open_storage
from connectors.rows import row_schema, rows_to_table
from schemas.fetch import OutcomeRow
from schemas.page import ParsedRow
from schemas.round import ParsedRef
from transforms import pieces

KINDS = ("fetched", "gone", "robots")


class View:
    def __init__(self, storage) -> None:
        self.storage = storage


def outcome(number: int, kind: str) -> OutcomeRow:
    state = ("robots", "fetched") if kind == "robots" else ("planned", kind)
    return OutcomeRow(
        f"http://a.example/{number}", 1, number, state[0], state[1], None, None, "", 0, 0.5, None, 0
    )


def page(number: int, chars: int) -> ParsedRow:
    empty: tuple = ()
    text = "".join(chr(97 + (number * 7 + index) % 26) for index in range(chars))
    return ParsedRow(
        1, number, f"http://a.example/{number}", None, None, "utf-8", "header", None, False, False, text, None, "h",
        empty, empty, empty, empty, empty, None, None, None,
    )  # fmt: skip


def write(tmp_path, kinds: list[str], groups: list[int], chars: int = 10) -> tuple[View, ParsedRef]:
    storage = open_storage(str(tmp_path))
    rows = [outcome(number, kind) for number, kind in enumerate(kinds)]
    parts.write_table(storage, "outcomes.parquet", rows_to_table(rows, OutcomeRow))
    pages = [page(row.url_key, chars) for row in rows if pieces.has_page(row)]
    tables = []
    while pages:
        size = groups.pop(0) if groups else len(pages)
        tables.append(rows_to_table(pages[:size], ParsedRow))
        pages = pages[size:]
    parts.write_parts(storage, "parsed.parquet", tables, row_schema(ParsedRow))
    return View(storage), ParsedRef("0000-000001", "outcomes.parquet", "parsed.parquet", "", 0, "", "")


def test_an_ordinary_segment_is_one_piece(tmp_path) -> None:
    view, parsed = write(tmp_path, ["fetched", "gone"] * 50, [10, 10, 10])
    (piece,) = pieces.pieces_of(view, parsed)
    assert (piece.number, len(piece.rows), len(piece.pages)) == (0, 100, 50)


def test_huge_pages_come_in_pieces(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "PIECE_BYTES", 30_000)
    view, parsed = write(tmp_path, ["gone", "fetched", "robots"] * 20, [2] * 10, chars=5_000)
    found = list(pieces.pieces_of(view, parsed))
    assert len(found) > 3
    assert all(sum(len(page.text) for page in piece.pages) <= 30_000 for piece in found)


def test_a_segment_without_a_page_is_one_piece(tmp_path) -> None:
    view, parsed = write(tmp_path, ["gone", "robots"], [])
    assert [(piece.number, len(piece.rows), piece.pages) for piece in pieces.pieces_of(view, parsed)] == [
        (0, 2, [])
    ]


@given(
    kinds=st.lists(st.sampled_from(KINDS), max_size=30),
    groups=st.lists(st.integers(1, 5), max_size=10),
    most=st.integers(0, 3000),
)
def test_pieces_add_up_to_the_segment(tmp_path_factory, kinds, groups, most) -> None:
    view, parsed = write(tmp_path_factory.mktemp("segment"), kinds, groups)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "PIECE_BYTES", most)
        found = list(pieces.pieces_of(view, parsed))
    assert [piece.number for piece in found] == list(range(len(found)))
    assert [row.url_key for piece in found for row in piece.rows] == list(range(len(kinds)))
    for piece in found:
        wanted = [row.url_key for row in piece.rows if pieces.has_page(row)]
        assert [page.url_key for page in piece.pages] == wanted
