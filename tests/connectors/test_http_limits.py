"""Time and size: what a slow, endless or swelling reply can cost at most."""

from __future__ import annotations

import gzip
import time
import tracemalloc

import brotli
import pytest
import zstandard

from connectors.encoding import decode_body
from connectors.limits import FetchLimits
from schemas.fetch import Capture, FetchFailure, FetchRequest
from tests.fakes.fetching import make_fetcher
from tests.fakes.raw_server import Peer, RawServer, answers

KB = 1000
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def timed(script, request: FetchRequest | None = None, **options):
    """Return the outcome of fetching from ``script`` and the seconds it took."""
    with RawServer(script) as server:
        fetcher = make_fetcher(**options)
        started = time.monotonic()
        outcome = fetcher.fetch((request or FetchRequest("/"))._replace(url=server.url()))
        seconds = time.monotonic() - started
        fetcher.close()
    return outcome, seconds


def dripping(before: bytes, dripped: bytes):
    def script(peer: Peer) -> None:
        peer.read_request()
        peer.send(before)
        peer.drip(dripped, 0.02)
        peer.hold()

    return script


@pytest.mark.parametrize(
    ("before", "dripped"),
    [
        (b"", b"HTTP/1.1 200 " + b"O" * 5000),
        (b"HTTP/1.1 200 OK\r\n", b"X-Long: " + b"a" * 5000),
        (b"HTTP/1.1 200 OK\r\n", b"A: b\r\n" * 1000),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 500),
        (CHUNKED, b"0" * 5000),
        (CHUNKED, b"1;" + b"e" * 4000),
    ],
)
def test_no_drip_stretches_a_fetch_without_a_body(before, dripped):
    outcome, seconds = timed(dripping(before, dripped), fetch_timeout_seconds=0.4)
    assert isinstance(outcome, FetchFailure)
    assert outcome.reason == "timeout"
    assert 0.3 < seconds < 1.5


@pytest.mark.parametrize(
    ("before", "dripped"),
    [
        (HEAD % 5000, b"x" * 5000),
        (b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 5000),
        (CHUNKED, b"1\r\nx\r\n" * 1000),
        (CHUNKED + b"1\r\nx\r\n0\r\n", b"Trailer: x\r\n" * 1000),
    ],
)
def test_a_dripping_body_is_cut_in_time_and_kept(before, dripped):
    outcome, seconds = timed(dripping(before, dripped), fetch_timeout_seconds=0.4)
    assert isinstance(outcome, Capture)
    assert outcome.truncated == "time"
    assert set(outcome.body) == {ord("x")}
    assert 0.3 < seconds < 1.5


@pytest.mark.parametrize("before", [b"", b"HTTP/1.1 200 OK\r\n", HEAD % 10])
def test_silence_ends_after_the_read_timeout(before):
    outcome, seconds = timed(dripping(before, b""), read_timeout_seconds=0.3)
    assert isinstance(outcome, FetchFailure)
    assert outcome.reason == "timeout"
    assert 0.2 < seconds < 1.5


def test_silence_inside_the_body_keeps_what_came():
    outcome, seconds = timed(dripping(HEAD % 10 + b"abc", b""), read_timeout_seconds=0.3)
    assert isinstance(outcome, Capture)
    assert (outcome.body, outcome.truncated) == (b"abc", "time")
    assert seconds < 1.5


@pytest.mark.parametrize("head", [HEAD % (10**17), b"HTTP/1.1 200 OK\r\n\r\n", CHUNKED + b"fffffffffff\r\n"])
def test_an_endless_body_is_cut_at_the_cap_with_bounded_memory(head):
    def endless(peer: Peer) -> None:
        peer.read_request()
        peer.send(head)
        peer.flood(b"x" * 64 * KB, 300_000 * KB)

    tracemalloc.start()
    try:
        outcome, _ = timed(endless, max_body_bytes=1000 * KB)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(outcome, Capture)
    assert (len(outcome.body), outcome.truncated) == (1000 * KB, "length")
    assert peak < 4000 * KB


@pytest.mark.parametrize("extra", [0, 1])
def test_cap_is_exact(extra):
    body = b"y" * (1000 + extra)
    for reply in (
        HEAD % len(body) + body,
        b"HTTP/1.1 200 OK\r\n\r\n" + body,
        CHUNKED + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body),
    ):
        outcome, _ = timed(answers(reply), max_body_bytes=1000)
        assert isinstance(outcome, Capture)
        assert (len(outcome.body), outcome.truncated) == (1000, "length" if extra else None)


def test_request_can_lower_the_cap():
    reply = HEAD % 100 + b"z" * 100
    outcome, _ = timed(answers(reply), FetchRequest("/", max_body_bytes=10))
    assert (outcome.body, outcome.truncated) == (b"z" * 10, "length")


def nested(data: bytes, *codings: str) -> bytes:
    encoders = {"gzip": gzip.compress, "br": brotli.compress, "zstd": zstandard.compress}
    for coding in codings:
        data = encoders[coding](data)
    return data


@pytest.mark.parametrize(
    "codings", [("gzip",), ("br",), ("zstd",), ("gzip", "gzip"), ("br", "gzip"), ("zstd", "br", "gzip")]
)
def test_bombs_are_flagged_and_kept_only_as_far_as_the_cap(codings):
    bomb = nested(b"\0" * 20_000 * KB, *codings)
    value = ", ".join(codings).encode()
    reply = b"HTTP/1.1 200 OK\r\nContent-Encoding: %s\r\nContent-Length: %d\r\n\r\n" % (value, len(bomb))
    tracemalloc.start()
    try:
        outcome, _ = timed(answers(reply + bomb), max_body_bytes=1000 * KB)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(outcome, Capture)
    assert outcome.truncated == "length"
    assert bomb.startswith(outcome.body)
    assert decode_body(outcome.body, value.decode(), 1000 * KB).truncated
    assert peak < 4000 * KB


def test_decoded_cap_can_differ_from_the_cap_as_sent():
    body = gzip.compress(b"word " * 10_000)
    reply = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    for cap, truncated in ((50_000, None), (49_999, "length")):
        outcome, _ = timed(answers(reply), max_decoded_bytes=cap)
        assert outcome.truncated == truncated


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\nX: " + b"a" * 70_000,
        b"HTTP/1.1 200 " + b"a" * 70_000,
        b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: %s\r\n" % (n, b"a" * 900) for n in range(80)),
        b"HTTP/1.1 200 OK\r\n" + b"A:\r\n" * 257,
        b"HTTP/1.1 200 OK\r\n" + b"no colon\r\n" * 257,
        b"HTTP/1.1 103 Hints\r\n" + b"Link: x\r\n" * 200 + b"\r\nHTTP/1.1 200 OK\r\n" + b"A:\r\n" * 57,
        CHUNKED + b"0\r\n" + b"T: x\r\n" * 100_000,
    ],
)
def test_endless_headers_are_refused(head):
    outcome, _ = timed(answers(head + b"\r\nContent-Length: 0\r\n\r\n"))
    assert isinstance(outcome, FetchFailure)
    assert outcome.reason == "header_too_large"


def test_as_many_headers_as_allowed_are_read():
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n" + b"A: b\r\n" * 255 + b"\r\n"
    outcome, _ = timed(answers(head))
    assert isinstance(outcome, Capture)
    assert len(outcome.response_headers) == 256


def test_chunk_framing_may_not_outweigh_the_body():
    outcome, _ = timed(answers(CHUNKED + (b"1;" + b"e" * 3000 + b"\r\nx\r\n") * 200), max_body_bytes=1000)
    assert isinstance(outcome, FetchFailure)
    assert outcome.reason == "bad_response"


def test_fetches_in_hand_end_when_the_fetcher_is_cut():
    fetcher = make_fetcher(read_timeout_seconds=20, fetch_timeout_seconds=30)

    def cutting(before: bytes):
        def script(peer: Peer) -> None:
            peer.read_request()
            peer.send(before)
            fetcher.cut()
            peer.hold()

        return script

    started = time.monotonic()
    with RawServer(cutting(HEAD % 10 + b"abc")) as server:
        outcome = fetcher.fetch(FetchRequest(server.url()))
        assert isinstance(outcome, Capture)
        assert (outcome.body, outcome.truncated) == (b"abc", "time")
        later = fetcher.fetch(FetchRequest(server.url()))
        assert isinstance(later, FetchFailure)
        assert (later.reason, server.connections) == ("stopped", 1)
    fetcher = make_fetcher(read_timeout_seconds=20, fetch_timeout_seconds=30)
    with RawServer(cutting(b"HTTP/1.1 200")) as server:
        outcome = fetcher.fetch(FetchRequest(server.url()))
        assert isinstance(outcome, FetchFailure)
        assert outcome.reason == "stopped"
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("connect_timeout_seconds", 0),
        ("read_timeout_seconds", -1),
        ("fetch_timeout_seconds", float("inf")),
        ("max_body_bytes", 0),
        ("max_headers", float("nan")),
    ],
)
def test_limits_refuse_what_bounds_nothing(name, value):
    with pytest.raises(ValueError, match=f"^{name} must be > 0 and finite, got"):
        FetchLimits(**{name: value})
