"""The frontier calendar: every URL to be visited again stands in exactly one file, under its slot.

``state/calendar/p=0012/SLOT/r000003-TOKEN.parquet`` holds UrlState rows sorted by (host_key, url_key). Time
slots hold what is due later, backlog slots what was due and left out by a budget (see connectors.slots).
Planning opens the slots that have come, so its cost follows what is due, not what is known:

- ``entries_to_open`` names the files to read: due time slots, backlog tiers in ascending order until a
  partition's share of the round is met, and those up to the tier whose turn it is;
- ``read`` splits their rows into due and later;
- after the round, everything opened and everything new is dealt again by ``write_slots``, and the opened
  entries leave the manifest. A row of a full slot moves at most three times on its way from far to its hour,
  and a backlog row about once each time its distance halves.

Small slots are joined with their neighbours, and small files left lying are gathered when there are eight of
them, so that the number of files follows the rows, not the rounds (docs/adr/0004-calendar.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from connectors import layout
from connectors.files import Storage
from connectors.rows import row_schema, rows_to_table
from connectors.runs import SealedFile, publish_sealed, round_of
from connectors.runs.keys import Keys, as_keys, is_sorted, sort_order
from connectors.slots import Ints, Slot, pack, parse_slot, slot_bounds, tier_in_turn
from schemas.manifest import FileEntry
from schemas.state import UrlState

TABLE = "calendar"
PACK_ROWS = 4096
SMALL_FILES = 8
ROW_GROUP_ROWS = 16_384
MOST_FILE_ROWS = 65_536
WHOLE_TIER = 32
DEEP_SHARES = 64


class Opened(NamedTuple):
    """The rows of opened slots: ``due`` by as_of, and ``later`` ones, which must be dealt again."""

    due: pa.Table
    later: pa.Table


def slot_in(entry: FileEntry) -> Slot:
    """Return the slot of a calendar file, from its path."""
    return parse_slot(entry.path.split("/")[-2])


def due_entries(entries: Sequence[FileEntry], as_of: float) -> list[FileEntry]:
    """Return the files of time slots that start at or before ``as_of`` (UTC epoch seconds), by path.

    They hold every URL of a time slot with next_fetch_at <= as_of.
    """
    slots = [(slot_in(entry), entry) for entry in entries]
    return _by_path(entry for slot, entry in slots if not slot.tier and slot.start_at <= as_of)


def entries_to_open(
    entries: Sequence[FileEntry],
    as_of: float,
    share: float,
    turn: int = 0,
    *,
    pack_rows: int = PACK_ROWS,
) -> list[FileEntry]:
    """Return the files of one partition that a round should read, by path.

    All due time slots; of the backlog, tiers in ascending order until there are ``share`` rows, and on to the
    tier whose turn it is (``turn`` counts rounds, shifted by the partition so that not all go deep at once; 0:
    no turn); and, when eight or more files below ``pack_rows`` would be left, those too, to be gathered.

    A tier above 32 is never opened whole: every 64 turns one of the deep tiers, each in its turn, hands up its
    oldest files, 64 shares of them. So what a round reads does not grow with the depth of the backlog, and
    yet every URL of it comes up.
    """
    opened = due_entries(entries, as_of)
    opened += _backlog_to_open(entries, sum(entry.rows for entry in opened), share, turn)
    paths = {entry.path for entry in opened}
    small = [entry for entry in entries if entry.rows < pack_rows and entry.path not in paths]
    return _by_path([*opened, *small] if len(small) >= SMALL_FILES else opened)


def _backlog_to_open(entries: Sequence[FileEntry], rows: int, share: float, turn: int) -> Iterator[FileEntry]:
    tiers: dict[int, list[FileEntry]] = {}
    for entry in sorted(entries, key=lambda entry: (round_of(entry), entry.path)):
        if tier := slot_in(entry).tier:
            tiers.setdefault(tier, []).append(entry)
    for tier in sorted(tier for tier in tiers if tier <= WHOLE_TIER):
        if rows < share or tier <= tier_in_turn(turn):
            yield from tiers[tier]
            rows += sum(entry.rows for entry in tiers[tier])
    deep = sorted(tier for tier in tiers if tier > WHOLE_TIER)
    if rows >= share:
        is_turn = deep and tier_in_turn(turn) > WHOLE_TIER
        deep = [deep[turn // (2 * WHOLE_TIER) % len(deep)]] if is_turn else []
    budget = DEEP_SHARES * share
    for entry in (entry for tier in deep for entry in tiers[tier]):
        if budget > 0:
            yield entry
            budget -= entry.rows


def read(storage: Storage, entries: Sequence[FileEntry], as_of: float) -> Opened:
    """Return the rows of these files, split by next_fetch_at <= as_of, each part sorted by its keys.

    Columns are those of UrlState; one that an older file lacks takes its default. Raises DamagedRun.
    """
    schema = row_schema(UrlState)
    parts = [_read_file(storage, entry) for entry in _by_path(entries)]
    rows = pa.concat_tables(parts) if parts else schema.empty_table()
    due = pc.less_equal(rows.column("next_fetch_at"), as_of)
    return Opened(_sorted(rows.filter(due)), _sorted(rows.filter(pc.invert(due))))


def write_slots(
    storage: Storage,
    partition: int,
    round_number: int,
    rows: pa.Table | Sequence[UrlState],
    now: float,
    token: str,
    *,
    tiers: Ints | None = None,
    pack_rows: int = PACK_ROWS,
) -> list[FileEntry]:
    """Deal rows into slots as seen from ``now``, write them, and return the entries by path.

    ``tiers`` holds, for each row, 0 for a time slot or the backlog tier it goes to. Call it once a
    partition, round and token, with all the rows: it raises ValueError when a URL is there twice, for
    every URL stands in exactly one slot. A slot of more than 65,536 rows takes several files. The same
    rows in any order give the same bytes.
    """
    table = rows if isinstance(rows, pa.Table) else rows_to_table(rows, UrlState)
    table = table.select(row_schema(UrlState).names).cast(row_schema(UrlState))
    if not is_sorted(*_keys(_sorted(table)), strictly=True):
        raise ValueError(f"a URL would stand twice in the calendar of partition {partition}")
    place = np.zeros(table.num_rows, dtype=np.int64) if tiers is None else np.asarray(tiers, dtype=np.int64)
    dealt = [*_deal_times(table, place, now, pack_rows), *_deal_backlog(place, pack_rows)]
    url_keys = as_keys(table.column("url_key"))
    return _by_path(
        _write_file(storage, partition, round_number, slot, _sorted(table.take(members)), name)
        for slot, all_members in dealt
        for name, members in _split(all_members, url_keys, token)
    )


def _split(members: Ints, url_keys: Keys, token: str) -> Iterator[tuple[str, Ints]]:
    """Yield (token, members) of files of bounded size; each gets URLs of all hosts, whatever the order."""
    parts = -(-len(members) // MOST_FILE_ROWS)
    if parts == 1:
        yield token, members
        return
    part_of = url_keys[members] % np.uint64(parts)
    for part in range(parts):
        chosen = members[part_of == part]
        if len(chosen):
            yield f"{token}-{part}", chosen


def _deal_times(table: pa.Table, place: Ints, now: float, pack_rows: int) -> Iterator[tuple[Slot, Ints]]:
    instants = table.column("next_fetch_at").to_numpy()
    members = np.flatnonzero(place == 0)
    members = members[np.argsort(instants[members], kind="stable")]
    starts, ends = slot_bounds(instants[members], now)
    yield from _packs(members, starts, ends, np.zeros(len(members), dtype=np.int64), pack_rows)


def _deal_backlog(place: Ints, pack_rows: int) -> Iterator[tuple[Slot, Ints]]:
    members = np.flatnonzero(place > 0)
    members = members[np.argsort(place[members], kind="stable")]
    nought = np.zeros(len(members), dtype=np.int64)
    yield from _packs(members, nought, nought, place[members], pack_rows)


def _packs(
    members: Ints, starts: Ints, ends: Ints, tiers: Ints, pack_rows: int
) -> Iterator[tuple[Slot, Ints]]:
    """Yield (slot, its members) for members ordered so that those of a slot are neighbours."""
    if len(members) == 0:
        return
    changes = (starts[1:] != starts[:-1]) | (ends[1:] != ends[:-1]) | (tiers[1:] != tiers[:-1])
    opens = np.concatenate([[0], np.flatnonzero(changes) + 1])
    bounds = np.append(opens, len(members))
    units = [(Slot(int(starts[a]), int(ends[a]), int(tiers[a])), int(b - a)) for a, b in pairwise(bounds)]
    unit = 0
    for slot, width in pack(units, pack_rows):
        yield slot, members[bounds[unit] : bounds[unit + width]]
        unit += width


def _write_file(
    storage: Storage, partition: int, round_number: int, slot: Slot, rows: pa.Table, token: str
) -> FileEntry:
    path = layout.state_path(TABLE, partition, f"{slot.name}/r{round_number:06d}-{token}.parquet")
    local = Path(storage.scratch_path(path))
    try:
        with pq.ParquetWriter(local, rows.schema, compression="zstd", write_page_checksum=True) as writer:
            writer.write_table(rows, row_group_size=ROW_GROUP_ROWS)
        size, digest = publish_sealed(storage, local, path)
    finally:
        local.unlink(missing_ok=True)
    hosts = as_keys(rows.column("host_key"))
    return FileEntry(
        path=path,
        staged_path="",
        table=TABLE,
        partition=partition,
        level=0,
        rows=rows.num_rows,
        bytes=size,
        digest=digest,
        min_key=int(hosts[0]),
        max_key=int(hosts[-1]),
    )


def _read_file(storage: Storage, entry: FileEntry) -> pa.Table:
    with SealedFile(storage, entry) as file:
        rows = file.rows(range(len(file.group_rows)))
    defaults: dict[str, Any] = cast(Any, UrlState)._field_defaults
    columns = [
        rows.column(field.name).cast(field.type)
        if field.name in rows.column_names
        else pa.array([defaults[field.name]] * rows.num_rows, field.type)
        for field in row_schema(UrlState)
    ]
    return pa.Table.from_arrays(columns, schema=row_schema(UrlState))


def _keys(rows: pa.Table) -> tuple[Any, Any]:
    return as_keys(rows.column("host_key")), as_keys(rows.column("url_key"))


def _sorted(rows: pa.Table) -> pa.Table:
    keys = _keys(rows)
    return rows if is_sorted(*keys) else rows.take(sort_order(*keys))


def _by_path(entries: Any) -> list[FileEntry]:
    return sorted(entries, key=lambda entry: entry.path)
