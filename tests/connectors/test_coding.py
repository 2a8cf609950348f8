"""Content codings come off whole, in part, or not at all; never past the limit."""

from __future__ import annotations

import gzip
import hashlib
import zlib

import brotlicffi
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from connectors.coding import decode_content, decoded_head

PAGE = b"<!doctype html><p>" + bytes(range(256)) * 40

ENCODERS = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotlicffi.compress,
    "zstd": zstandard.compress,
}


def raw_deflate(body: bytes) -> bytes:
    return zlib.compress(body)[2:-4]


@pytest.mark.parametrize("coding", ENCODERS)
def test_each_coding_comes_off(coding: str) -> None:
    assert decode_content(ENCODERS[coding](PAGE), coding.upper(), 1 << 20) == (PAGE, None)
    assert decode_content(ENCODERS[coding](b""), coding, 1 << 20) == (b"", None)


def test_deflate_without_its_wrapper() -> None:
    assert decode_content(raw_deflate(PAGE), "deflate", 1 << 20) == (PAGE, None)


def test_codings_come_off_in_reverse_order() -> None:
    twice = brotlicffi.compress(gzip.compress(PAGE))
    assert decode_content(twice, "gzip, identity, br", 1 << 20) == (PAGE, None)


def test_gzip_members_are_joined_and_rubbish_after_them_is_left() -> None:
    assert decode_content(gzip.compress(b"a") + gzip.compress(b"b") + b"\0\0", "gzip", 9) == (b"ab", None)


def test_thousands_of_members_are_refused_at_a_bounded_cost() -> None:
    assert decode_content(gzip.compress(b"a") * 5000, "gzip", 1 << 20) == (b"a" * 100, "damaged")


@pytest.mark.parametrize("coding", ENCODERS)
def test_exactly_the_limit_is_whole_and_one_byte_more_is_not(coding: str) -> None:
    sent = ENCODERS[coding](PAGE)
    assert decode_content(sent, coding, len(PAGE)) == (PAGE, None)
    assert decode_content(sent, coding, len(PAGE) - 1) == (PAGE[:-1], "limit")


@pytest.mark.parametrize("coding", ENCODERS)
def test_a_bomb_costs_its_limit(coding: str) -> None:
    bomb = ENCODERS[coding](b"\0" * (32 << 20))
    assert decode_content(bomb, coding, 1000) == (b"\0" * 1000, "limit")


@pytest.mark.parametrize("coding", ENCODERS)
def test_a_cut_body_gives_its_beginning_and_says_so(coding: str) -> None:
    sent = ENCODERS[coding](PAGE)
    body, fault = decode_content(sent[:-3], coding, 1 << 20)
    assert fault == "damaged"
    assert PAGE.startswith(body)


def test_a_damaged_body_gives_what_came_before() -> None:
    noise = b"".join(hashlib.sha256(bytes([i])).digest() for i in range(256)) * 3
    sent = bytearray(gzip.compress(noise))
    sent[len(sent) // 2 : len(sent) // 2 + 40] = b"\xff" * 40
    body, fault = decode_content(bytes(sent), "gzip", 1 << 20)
    assert fault == "damaged"
    assert len(body) > 500
    assert noise.startswith(body[:500])


def test_an_unknown_coding_leaves_the_body_as_sent() -> None:
    assert decode_content(PAGE, "compress", 1 << 20) == (PAGE, "unknown_coding")
    assert decode_content(PAGE, ", ".join(["gzip"] * 6), 1 << 20) == (PAGE, "unknown_coding")
    assert decode_content(PAGE, "compress", 5) == (PAGE, "unknown_coding")


@pytest.mark.parametrize("nothing", [None, "", "identity", " , "])
def test_no_coding_is_the_body_itself(nothing: str | None) -> None:
    assert decode_content(PAGE, nothing, 1 << 20) == (PAGE, None)


def test_the_head_of_a_body_whose_header_lies_is_the_head_as_sent() -> None:
    assert decoded_head(PAGE, "gzip", 15) == b"<!doctype html>"
    assert decoded_head(gzip.compress(PAGE), "gzip", 15) == b"<!doctype html>"
    assert decoded_head(b"", "gzip", 15) == b""


@given(st.binary(max_size=300), st.sampled_from(sorted(ENCODERS)), st.integers(1, 100))
def test_no_bytes_break_a_decoder(body: bytes, coding: str, limit: int) -> None:
    decoded = decode_content(body, coding, limit)
    assert len(decoded.body) <= limit
