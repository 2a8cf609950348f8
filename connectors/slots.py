"""Names and arithmetic of the frontier calendar's slots: pure functions, numpy in and out.

A time slot ``tSTART-END`` holds URLs whose next_fetch_at lies in [START, END), in whole hours since the
epoch, eight digits each, so that names sort by time. A backlog slot ``bK`` (ten digits, K a power of two)
holds URLs that were due and left out by a budget, about K rounds away from their turn.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

HOUR_SECONDS = 3600.0
SPANS = ((64, 1), (4096, 64))
LONGEST_SPAN_HOURS = 4096
LAST_HOUR = 99_999_999 // LONGEST_SPAN_HOURS * LONGEST_SPAN_HOURS
LAST_TIER = 1 << 30

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Slot(NamedTuple):
    """A slot by its name's meaning: hours [start, end) of a time slot, or ``tier`` > 0 of a backlog slot."""

    start: int
    end: int
    tier: int = 0

    @property
    def name(self) -> str:
        """The slot's folder name."""
        return f"b{self.tier:010d}" if self.tier else f"t{self.start:08d}-{self.end:08d}"

    @property
    def start_at(self) -> float:
        """The instant (UTC epoch seconds) from which its URLs can be due; 0 for the backlog."""
        return self.start * HOUR_SECONDS


def parse_slot(name: str) -> Slot:
    """Return the slot of a name. Raises ValueError for another text."""
    if name.startswith("b"):
        return Slot(0, 0, int(name[1:]))
    if not name.startswith("t"):
        raise ValueError(f"no slot of the calendar: {name}")
    start, end = name[1:].split("-")
    return Slot(int(start), int(end))


def slot_of(next_fetch_at: float, now: float) -> Slot:
    """Return the time slot of an instant as seen from ``now`` (both UTC epoch seconds).

    Hours within 64 hours of now, beyond that slots of 64 hours, beyond 4,096 hours slots of 4,096, aligned to
    the epoch. A slot longer than an hour never holds ``now``: it opens after now, or is past. Raises
    ValueError for an instant before 1970, after the year 13,000, or not finite.
    """
    starts, ends = slot_bounds(np.array([next_fetch_at]), now)
    return Slot(int(starts[0]), int(ends[0]))


def slot_bounds(next_fetch_at: Floats, now: float) -> tuple[Ints, Ints]:
    """Return the first and the one-past-last hour of every instant's slot; see ``slot_of``."""
    if not np.all((next_fetch_at >= 0) & (next_fetch_at < LAST_HOUR * HOUR_SECONDS)):
        raise ValueError("a next_fetch_at is not finite, before 1970 or after the year 13,000")
    hour = np.floor_divide(next_fetch_at, HOUR_SECONDS).astype(np.int64)
    distance = np.abs(hour - int(now // HOUR_SECONDS))
    span = np.full(len(hour), LONGEST_SPAN_HOURS)
    for reach, length in reversed(SPANS):
        span[distance < reach] = length
    starts = hour // span * span
    return starts, starts + span


def tier_of(host_turns: float, partition_turns: float) -> int:
    """Return the backlog tier of a URL: 1, or the largest power of two not above the larger of the two.

    ``host_turns`` is its position in its host divided by what the host may fetch a round, and
    ``partition_turns`` its position in the partition divided by the partition's share of a round: the
    larger one is the number of rounds until its turn, if nothing better comes.
    """
    return int(tiers_of(np.array([host_turns]), np.array([partition_turns]))[0])


def tiers_of(host_turns: Floats, partition_turns: Floats) -> Ints:
    """Return ``tier_of`` for arrays."""
    turns = np.clip(np.maximum(host_turns, partition_turns), 1.0, float(LAST_TIER))
    tiers: Ints = np.left_shift(np.int64(1), np.frexp(turns)[1].astype(np.int64) - 1)
    return tiers


def deal_tiers(host_keys: npt.NDArray[np.uint64], host_quotas: Floats, share: float) -> Ints:
    """Return the backlog tier of every left-out URL of a partition, given in the order of their rank.

    ``host_quotas`` is, for each URL, what its host may fetch a round; ``share`` what the partition may.
    Quotas below 1 count as 1.
    """
    order = np.argsort(host_keys, kind="stable")
    ordered = host_keys[order]
    opens = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])) if len(ordered) else order
    sizes = np.diff(np.append(opens, len(ordered)))
    in_host = np.empty(len(ordered), dtype=np.int64)
    in_host[order] = np.arange(len(ordered)) - np.repeat(opens, sizes)
    return tiers_of(in_host / np.maximum(host_quotas, 1.0), np.arange(len(ordered)) / max(share, 1.0))


def pack(units: list[tuple[Slot, int]], pack_rows: int) -> list[tuple[Slot, int]]:
    """Return slots joined with their neighbours until each holds at least ``pack_rows`` rows.

    ``units`` are (slot, rows), nearest first; the answer groups them in that order as (joined slot, number of
    units). A joined slot opens with its nearest part. A small slot is not joined to a far larger one,
    which would then be read too early.
    """
    packs: list[tuple[Slot, int]] = []
    first, rows = 0, 0
    for index, (_, count) in enumerate(units):
        if rows and rows + count > 2 * pack_rows:
            packs.append((_joined(units[first:index]), index - first))
            first, rows = index, 0
        rows += count
        if rows >= pack_rows:
            packs.append((_joined(units[first : index + 1]), index + 1 - first))
            first, rows = index + 1, 0
    if first < len(units) and packs:
        _, before = packs.pop()
        packs.append((_joined(units[first - before :]), before + len(units) - first))
    elif units and not packs:
        packs.append((_joined(units), len(units)))
    return packs


def _joined(units: list[tuple[Slot, int]]) -> Slot:
    slots = [slot for slot, _ in units]
    if slots[0].tier:
        return slots[0]
    return Slot(min(slot.start for slot in slots), max(slot.end for slot in slots))


def tier_in_turn(turn: int) -> int:
    """Return the tier up to which a turn opens the backlog: the largest power of two that divides it.

    So tier K comes up every K turns, and no URL starves behind newer ones. A tier holds about K shares, so
    this reads about two shares a turn for each doubling of the backlog. Turn 0 opens none.
    """
    return math.gcd(turn, LAST_TIER) if turn else 0
