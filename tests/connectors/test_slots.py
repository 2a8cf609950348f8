from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.slots import Slot, deal_tiers, pack, parse_slot, slot_of, tier_in_turn, tier_of

HOUR = 3600.0
INSTANT = st.floats(0, 4e9)


class TestSlotOf:
    @given(at=INSTANT, now=INSTANT)
    def test_holds_the_instant_and_no_long_slot_holds_now(self, at: float, now: float) -> None:
        slot = slot_of(at, now)
        assert slot.start * HOUR <= at < slot.end * HOUR
        assert slot.end - slot.start == 1 or not slot.start * HOUR <= now < slot.end * HOUR
        assert slot.end - slot.start in (1, 64, 4096)

    @given(at=st.integers(1, 500_000))
    def test_the_last_instant_before_an_hour_is_in_the_hour_before(self, at: int) -> None:
        assert slot_of(math.nextafter(at * HOUR, 0), at * HOUR).end == at
        assert slot_of(at * HOUR, at * HOUR).start == at

    @pytest.mark.parametrize(
        ("hours", "length"),
        [(0, 1), (63, 1), (64, 64), (4095, 64), (4096, 4096), (-63, 1), (-64, 64), (-5000, 4096)],
    )
    def test_length_grows_with_distance(self, hours: int, length: int) -> None:
        slot = slot_of((480_000 + hours) * HOUR, 480_000 * HOUR)
        assert slot.end - slot.start == length
        assert slot.start % length == 0

    @given(at=INSTANT, now=INSTANT, later=INSTANT)
    def test_names_sort_by_start_and_read_back(self, at: float, now: float, later: float) -> None:
        one, two = slot_of(at, now), slot_of(later, now)
        assert (one.name < two.name) == ((one.start, one.end) < (two.start, two.end))
        assert parse_slot(one.name) == one

    @pytest.mark.parametrize("at", [-1.0, math.nan, math.inf, 1e15])
    def test_refuses_an_instant_that_no_name_can_hold(self, at: float) -> None:
        with pytest.raises(ValueError, match="not finite"):
            slot_of(at, 0.0)

    def test_refuses_a_name_of_something_else(self) -> None:
        with pytest.raises(ValueError, match="no slot of the calendar: r000001"):
            parse_slot("r000001")


class TestTiers:
    @pytest.mark.parametrize(
        ("host", "partition", "tier"),
        [(0, 0, 1), (1.9, 0, 1), (2, 0, 2), (0, 3.99, 2), (0, 4, 4), (7, 9, 8), (1e30, 0, 2**30)],
    )
    def test_powers_of_two_of_the_longer_wait(self, host: float, partition: float, tier: int) -> None:
        assert tier_of(host, partition) == tier
        assert parse_slot(Slot(0, 0, tier).name).tier == tier

    def test_tiers_sort_by_name(self) -> None:
        names = [Slot(0, 0, 1 << power).name for power in range(31)]
        assert names == sorted(names)

    def test_deals_by_position_in_the_host_and_in_the_partition(self) -> None:
        hosts = np.array([7, 7, 9, 7, 7, 9, 7], np.uint64)
        assert deal_tiers(hosts, np.full(7, 1.0), 100.0).tolist() == [1, 1, 1, 2, 2, 1, 4]
        assert deal_tiers(hosts, np.full(7, 50.0), 2.0).tolist() == [1, 1, 1, 1, 2, 2, 2]
        assert deal_tiers(hosts[:0], np.zeros(0), 2.0).tolist() == []

    def test_deeper_tiers_have_rarer_turns(self) -> None:
        turns = [tier_in_turn(turn) for turn in range(1, 65)]
        assert {tier: turns.count(tier) for tier in set(turns)} == {
            1: 32, 2: 16, 4: 8, 8: 4, 16: 2, 32: 1, 64: 1,
        }  # fmt: skip
        assert tier_in_turn(0) == 0


class TestPack:
    @given(counts=st.lists(st.integers(1, 40), max_size=30))
    def test_every_unit_is_in_one_pack_in_order(self, counts: list[int]) -> None:
        units = [(Slot(hour, hour + 1), count) for hour, count in enumerate(counts)]
        packs = pack(units, 10)
        assert sum(width for _, width in packs) == len(units)
        at = 0
        for slot, width in packs:
            assert slot == Slot(at, at + width)
            at += width

    @given(counts=st.lists(st.integers(1, 40), max_size=30))
    def test_a_small_pack_stands_only_before_one_it_must_not_drag_along(self, counts: list[int]) -> None:
        units = [(Slot(hour, hour + 1), count) for hour, count in enumerate(counts)]
        packs = pack(units, 10)
        rows = [sum(counts[slot.start : slot.end]) for slot, _ in packs]
        for own, following in pairwise(rows):
            assert own >= 10 or own + following > 20
        assert not rows or len(rows) == 1 or rows[-1] >= 10

    def test_few_rows_are_one_file(self) -> None:
        units = [(Slot(3, 4), 5), (Slot(64, 128), 2), (Slot(4096, 8192), 1)]
        assert pack(units, 10) == [(Slot(3, 8192), 3)]
        assert pack([(Slot(0, 0, 1), 5), (Slot(0, 0, 8), 2)], 10) == [(Slot(0, 0, 1), 2)]

    def test_a_large_slot_is_not_opened_early_for_a_small_one(self) -> None:
        assert pack([(Slot(3, 4), 5), (Slot(64, 128), 500)], 10) == [(Slot(3, 4), 1), (Slot(64, 128), 1)]
