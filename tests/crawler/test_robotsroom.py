"""Room for rules: what is used stays parsed, and neither many files nor large ones take more than their share."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from crawler.robotsroom import (
    HUGE_BYTES,
    LARGE_BYTES,
    MOST_HUGE_BYTES,
    MOST_LARGE_BYTES,
    PARSED_BYTES,
    PARSED_FILES,
    ParsedRules,
    RobotsRoom,
)


def body(number: int, size: int = 30) -> bytes:
    return (b"User-agent: *\nDisallow: /%d\n" % number).ljust(size, b"#")


def test_rules_in_use_are_parsed_once() -> None:
    parsed = ParsedRules("roundcrawl")
    assert parsed.of(body(1)) is parsed.of(body(1))
    assert not parsed.of(body(1)).verdict("http://a.example/1").allowed


def test_neither_many_files_nor_large_ones_stay_parsed() -> None:
    parsed = ParsedRules("roundcrawl")
    first = parsed.of(body(0))
    for number in range(1, PARSED_FILES + 10):
        parsed.of(body(number))
    assert len(parsed._rules) == PARSED_FILES
    assert parsed.of(body(0)) is not first
    for number in range(20):
        parsed.of(body(number, 500_000))
    assert len(parsed._rules) == PARSED_BYTES // 500_000


def test_one_file_is_parsed_whatever_its_size() -> None:
    parsed = ParsedRules("roundcrawl")
    large = body(1, PARSED_BYTES + 1)
    assert parsed.of(large) is parsed.of(large)


@given(
    st.lists(st.tuples(st.sampled_from([100, 20_000, 90_000, 200_000, 500_000]), st.booleans()), max_size=400)
)
def test_room_is_never_exceeded_and_small_files_always_find_some(orders: list[tuple[int, bool]]) -> None:
    room, kept = RobotsRoom(), []
    for size, leaves in orders:
        if room.grants(size):
            kept.append(size)
        else:
            assert size > LARGE_BYTES
        if leaves and kept:
            room.returned(kept.pop(0))
        assert sum(size for size in kept if size > LARGE_BYTES) <= MOST_LARGE_BYTES
        assert sum(size for size in kept if size > HUGE_BYTES) <= MOST_HUGE_BYTES
