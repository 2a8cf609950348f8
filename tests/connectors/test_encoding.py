"""Content codings: round trips, other people's quirks, damage, and no more memory than asked."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from connectors.encoding import bytes_before_overflow, codings_of, decode_body

ENOUGH = 10_000_000
ENCODERS = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.compress,
}
CODINGS = st.lists(st.sampled_from(sorted(ENCODERS)), max_size=5)
DATA = st.one_of(
    st.binary(max_size=300),
    st.builds(lambda part, times: part * times, st.binary(min_size=1, max_size=20), st.integers(0, 20_000)),
)


def raw_deflate(data: bytes) -> bytes:
    deflater = zlib.compressobj(wbits=-15)
    return deflater.compress(data) + deflater.flush()


def encode(data: bytes, codings: list[str]) -> bytes:
    for coding in codings:
        data = ENCODERS[coding](data)
    return data


@given(data=DATA, codings=CODINGS)
def test_what_was_encoded_comes_back(data, codings):
    decoded = decode_body(encode(data, codings), ", ".join(codings), ENOUGH)
    assert (decoded.data, decoded.truncated, decoded.error) == (data, False, None)


@given(data=DATA, codings=CODINGS, cap=st.integers(1, 5000))
def test_the_cap_holds_and_is_told(data, codings, cap):
    body = encode(data, codings)
    decoded = decode_body(body, ",".join(codings), cap)
    assert data.startswith(decoded.data)
    assert len(decoded.data) <= cap
    if not decoded.truncated:
        assert decoded.data == data
    elif len(codings) < 2:
        assert len(data) > cap
    kept = bytes_before_overflow(body, ",".join(codings), cap)
    assert (kept is not None) == decoded.truncated
    if kept is not None:
        again = decode_body(body[:kept], ",".join(codings), cap)
        assert (again.data, again.truncated) == (decoded.data, True)


@given(
    data=DATA,
    codings=CODINGS,
    cut=st.integers(0, 400),
    flips=st.lists(st.tuples(st.integers(0, 400), st.integers(1, 255)), max_size=3),
)
def test_damaged_bodies_never_raise(data, codings, cut, flips):
    body = bytearray(encode(data, codings))
    for index, bits in flips:
        if body:
            body[index % len(body)] ^= bits
    damaged = bytes(body[: len(body) - cut % (len(body) + 1)])
    decoded = decode_body(damaged, ", ".join(codings), 5000)
    assert len(decoded.data) <= 5000
    assert decoded.error is None or decoded.error.isprintable()
    bytes_before_overflow(damaged, ", ".join(codings), 5000)


@given(body=st.binary(max_size=500), coding=st.sampled_from(sorted(ENCODERS)))
def test_bytes_in_no_coding_never_raise(body, coding):
    assert len(decode_body(body, coding, 1000).data) <= 1000


def test_bare_deflate_is_read_under_the_same_name():
    assert decode_body(raw_deflate(b"page " * 99), "deflate", ENOUGH).data == b"page " * 99


@pytest.mark.parametrize("size", [65_535, 65_536, 65_537, 131_072, 200_000])
def test_output_that_waits_behind_the_last_input_is_fetched(size):
    decoded = decode_body(raw_deflate(b"a" * size), "deflate", ENOUGH)
    assert (len(decoded.data), decoded.error) == (size, None)


def test_gzip_members_are_joined_and_padding_is_dropped():
    two = gzip.compress(b"one ") + gzip.compress(b"two")
    for tail in (b"", b"\0" * 600, b"trailing garbage"):
        decoded = decode_body(two + tail, "gzip", ENOUGH)
        assert (decoded.data, decoded.error) == (b"one two", None)


def test_members_without_end_are_stopped():
    decoded = decode_body(gzip.compress(b"") * 20_000, "gzip", ENOUGH)
    assert decoded.error == "more than 1000 gzip members"


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br"])
def test_a_body_cut_short_gives_what_came(coding):
    page = b"".join(b"line %d of the page\n" % number for number in range(9000))
    body = ENCODERS[coding](page)
    decoded = decode_body(body[: len(body) // 2], coding, ENOUGH)
    assert page.startswith(decoded.data)
    assert len(decoded.data) > len(page) // 4
    assert decoded.error == "the encoded body ends early"


def test_everything_before_a_damaged_byte_is_kept():
    page = b"".join(b"line %d of the page\n" % number for number in range(9000))
    body = bytearray(gzip.compress(page))
    body[-6] ^= 1
    decoded = decode_body(bytes(body), "gzip", ENOUGH)
    assert decoded.data == page
    assert "incorrect data check" in decoded.error


@pytest.mark.parametrize("coding", ["gzip", "zstd", "br"])
def test_a_body_that_was_never_encoded_is_given_as_it_is(coding):
    page = b"<html>\xff not encoded at all" * 20
    decoded = decode_body(page, coding, ENOUGH)
    assert decoded.data == page
    assert decoded.error


def test_unknown_and_too_many_codings_are_named():
    assert decode_body(b"x", "compress", 10).error == "unknown content coding compress"
    assert decode_body(b"x", "b\x1bad", 10).error == "unknown content coding b?ad"
    assert decode_body(b"x", ", ".join(["gzip"] * 6), 10).error == "more than 5 content codings"


@pytest.mark.parametrize("value", [None, "", "identity", " , Identity ,"])
def test_no_coding_leaves_the_body_alone(value):
    assert codings_of(value) == ()
    assert decode_body(b"page", value, 3) == (b"pag", True, None, 4)


def test_an_empty_body_is_empty_in_any_coding():
    for coding in ENCODERS:
        assert decode_body(b"", coding, 10) == (b"", False, None, 0)


@pytest.mark.parametrize("codings", [["gzip"], ["br"], ["zstd"], ["gzip", "br"], ["zstd", "gzip", "gzip"]])
def test_bombs_cost_no_more_than_the_cap(codings):
    bomb = encode(b"\0" * 30_000_000, codings)
    tracemalloc.start()
    try:
        decoded = decode_body(bomb, ",".join(codings), 500_000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (decoded.truncated, decoded.error) == (True, None)
    assert peak < 3_000_000


def test_levels_between_are_capped_too():
    swollen = gzip.compress(b"\x00\x00\x00\xff\xff" * 1_000_000)
    decoded = decode_body(swollen, "deflate, gzip", 100_000)
    assert (decoded.data, decoded.truncated) == (b"", True)
