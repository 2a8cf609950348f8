"""A parsed segment in pieces that fit into memory, however much its pages swell."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from connectors import parts
from connectors.rows import table_to_rows
from schemas.fetch import OutcomeRow
from schemas.page import ParsedRow
from schemas.round import ParsedRef
from transforms.view import RoundView

PIECE_BYTES = 64_000_000


class Piece(NamedTuple):
    """Consecutive outcome rows of a segment with the pages among them; ``number`` counts from 0."""

    number: int
    rows: list[OutcomeRow]
    pages: list[ParsedRow]


def pieces_of(view: RoundView, parsed: ParsedRef) -> Iterator[Piece]:
    """Yield a segment's rows, in order: in one piece, unless texts and links take more than 64 MB."""
    rows = deque(table_to_rows(parts.read_whole(view.storage, parsed.outcomes_path), OutcomeRow))
    piles = _piles(parts.group_sizes(view.storage, parsed.parsed_path))
    for number, pile in enumerate(piles):
        pages: list[ParsedRow] = []
        for group in pile:
            pages += table_to_rows(parts.read_part(view.storage, parsed.parsed_path, group), ParsedRow)
        is_last = number + 1 == len(piles)
        count = len(rows) if is_last else _rows_until(rows, len(pages))
        yield Piece(number, [rows.popleft() for _ in range(count)], pages)


def has_page(row: OutcomeRow) -> bool:
    """Return whether the parse step made a page, or a failure, of a row."""
    return row.outcome == "fetched" and row.kind != "robots"


def _piles(sizes: Sequence[int]) -> list[list[int]]:
    """Return the numbers of row groups, in order, in piles of at most PIECE_BYTES or one group; at least one."""
    piles: list[list[int]] = [[]]
    filled = 0
    for number, size in enumerate(sizes):
        if piles[-1] and filled + size > PIECE_BYTES:
            piles.append([])
            filled = 0
        piles[-1].append(number)
        filled += size
    return piles


def _rows_until(rows: Iterable[OutcomeRow], pages: int) -> int:
    """Return how many rows, from the first on, have exactly so many pages among them."""
    count = 0
    for row in rows:
        if has_page(row):
            if not pages:
                break
            pages -= 1
        count += 1
    return count
