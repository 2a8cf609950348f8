"""Replies that are none: each ends as an outcome with its word, and nothing of it reaches a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.fetch import Capture, FetchFailure, FetchRequest
from tests.fakes.fetching import make_fetcher
from tests.fakes.raw_server import Peer, RawServer, answers

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def fetch(script, **options) -> Capture | FetchFailure:
    with RawServer(script) as server:
        fetcher = make_fetcher(**options)
        outcome = fetcher.fetch(FetchRequest(server.url()))
        fetcher.close()
        return outcome


@pytest.mark.parametrize(
    "reply",
    [
        b"hello\r\n",
        b"hello",
        b"<html>HTTP/0.9</html>\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\x15\x03\x01\x00\x02\x02\x46\n",
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/0.9 200 OK\r\n\r\n",
        b"http/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1 099 OK\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 200OK\r\n\r\n",
        b"HTTP/1.1  200 OK\r\n\r\n",
        b"HTTP/1.10 200 OK\r\n\r\n",
        b"\r\n\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n X: space before the first field\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: 1\rY: 2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX\x00Y: 1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX\x1b[2J: 1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 9 + b"HTTP/1.1 200 OK\r\n\r\n",
        CHUNKED + b"xyz\r\n",
        CHUNKED + b"-5\r\nhello\r\n0\r\n\r\n",
        CHUNKED + b"+5\r\nhello\r\n0\r\n\r\n",
        CHUNKED + b"0x5\r\nhello\r\n0\r\n\r\n",
        CHUNKED + b"1_0\r\nhello\r\n0\r\n\r\n",
        CHUNKED + b"\r\nhello\r\n0\r\n\r\n",
        CHUNKED + b"5 hello\r\nhello\r\n0\r\n\r\n",
        CHUNKED + b"5\r\nhello world\r\n0\r\n\r\n",
        CHUNKED + b"f" * 16 + b"\r\nhello",
        CHUNKED + b"0" * 5000 + b"\r\n",
    ],
)
def test_what_is_not_http_1_is_a_bad_response(reply):
    outcome = fetch(answers(reply))
    assert isinstance(outcome, FetchFailure)
    assert outcome.reason == "bad_response"
    assert outcome.ip == "127.0.0.1"
    assert outcome.detail.isprintable()


@pytest.mark.parametrize(
    ("reply", "body"),
    [
        (b"\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", b"hi"),
        (b"HTTP/1.1 200 OK\nContent-Length: 2\n\nhi", b"hi"),
        (b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nhi", b"hi"),
        (b"HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\nhi", b"hi"),
        (b"HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nhi", b"hi"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\nContent-Length: 2\r\n\r\nhi", b"hi"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\nhi", b"hi"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nhi", b"hi"),
        (b"HTTP/1.1 200 OK\r\nno colon here\r\n folded\r\nContent-Length: 2\r\n\r\nhi", b"hi"),
        (b"HTTP/1.1 200 OK\r\n: no name\r\nContent-Length: 2\r\n\r\nhi", b"hi"),
        (
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\n\r\nhi",
            b"hi",
        ),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 2\r\n\r\nhi", b"hi"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n002 ;x=y\nhi\n0\n\n", b"hi"),
        (b"HTTP/1.1 204 No\r\nContent-Length: 2\r\n\r\nhi", b""),
        (b"HTTP/1.1 304 Same\r\nContent-Length: 2\r\n\r\n", b""),
        (b"HTTP/1.1 200 OK\r\n\r\n", b""),
        (CHUNKED + b"2\r\nhi\r\n0\r\n", b"hi"),
    ],
)
def test_what_browsers_forgive_is_forgiven(reply, body):
    outcome = fetch(answers(reply))
    assert isinstance(outcome, Capture), outcome
    assert (outcome.body, outcome.truncated) == (body, None)


def test_folded_values_are_joined_and_controls_become_spaces():
    head = b"HTTP/1.1 200 O\x1b[31mK\r\nX-Fold: a\r\n\t b\r\n c\r\nX-Esc: \x00a\x1bb\x07\r\n"
    outcome = fetch(answers(head + b"Content-Length: 0\r\n\r\n"))
    assert isinstance(outcome, Capture)
    assert outcome.reason_phrase == "O [31mK"
    assert outcome.response_headers[:2] == (("X-Fold", "a b c"), ("X-Esc", "a b"))


@pytest.mark.parametrize(
    "reply", [b"", b"HTTP/1.1 20", b"HTTP/1.1 200 OK\r\nX: 1\r\n", CHUNKED, CHUNKED + b"5"]
)
def test_early_end_without_a_body_is_a_disconnect(reply):
    outcome = fetch(answers(reply))
    assert isinstance(outcome, FetchFailure)
    assert outcome.reason == "disconnect"


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi",
        CHUNKED + b"3\r\nhi",
        CHUNKED + b"2\r\nhi",
        CHUNKED + b"2\r\nhi\r",
        CHUNKED + b"2\r\nhi\r\n",
        CHUNKED + b"2\r\nhi\r\n5",
    ],
)
def test_early_end_of_a_body_is_flagged_and_kept(reply):
    outcome = fetch(answers(reply))
    assert isinstance(outcome, Capture)
    assert (outcome.body, outcome.truncated) == (b"hi", "disconnect")


@pytest.mark.parametrize("status", [301, 404, 503])
def test_redirects_and_errors_are_known_by_their_head_alone(status):
    outcome = fetch(answers(b"HTTP/1.1 %d X\r\nLocation: /y\r\nContent-Length: 9\r\n\r\n" % status))
    assert isinstance(outcome, Capture)
    assert (outcome.status, outcome.body, outcome.truncated) == (status, b"", "disconnect")


@pytest.mark.parametrize("before", [b"", b"HTTP/1.1 200 OK\r\n"])
def test_reset_before_a_body_has_its_own_word(before):
    def resetting(peer: Peer) -> None:
        peer.read_request()
        peer.send(before)
        peer.reset()

    outcome = fetch(resetting)
    assert isinstance(outcome, FetchFailure)
    assert outcome.reason == "connection_reset"


def test_reset_inside_a_body_keeps_what_came():
    def resetting(peer: Peer) -> None:
        peer.read_request()
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi")
        peer.drip(b"!", 0.1)
        peer.reset()

    outcome = fetch(resetting)
    assert isinstance(outcome, Capture)
    assert outcome.truncated == "disconnect"
    assert outcome.body.startswith(b"hi")


def test_refused_connection_has_its_own_word():
    with RawServer(answers(b"")) as server:
        url = server.url()
    failure = make_fetcher().fetch(FetchRequest(url))
    assert isinstance(failure, FetchFailure)
    assert failure.reason == "connection_refused"


def test_an_answer_that_comes_before_the_request_is_read_counts():
    def hasty(peer: Peer) -> None:
        peer.send(b"HTTP/1.1 503 Busy\r\nRetry-After: 9\r\nContent-Length: 0\r\n\r\n")
        peer.hold()

    outcome = fetch(hasty)
    assert isinstance(outcome, Capture)
    assert outcome.status == 503


REPLIES = st.one_of(
    st.binary(max_size=200),
    st.lists(
        st.sampled_from(
            [
                b"HTTP/1.1 200 OK\r\n",
                b"HTTP/1.1 103 Hints\r\n",
                b"Content-Length: 5\r\n",
                b"Content-Length: 7\r\n",
                b"Content-Encoding: gzip\r\n",
                b"Content-Encoding: br, zstd\r\n",
                b"Transfer-Encoding: chunked\r\n",
                b"Connection: close\r\n",
                b" fold\r\n",
                b"X: \x1b\x00\r",
                b"\r\n",
                b"\n",
                b"\x1f\x8b\x08\x00",
                b"5\r\nhello\r\n",
                b"0\r\n\r\n",
                b"\xff\xfe",
            ]
        ),
        max_size=12,
    ).map(b"".join),
)


@given(reply=REPLIES)
def test_any_bytes_give_an_outcome_in_time(reply):
    outcome = fetch(answers(reply), read_timeout_seconds=0.5, fetch_timeout_seconds=1.0)
    assert outcome.finished_at - outcome.started_at < 1.5
    if isinstance(outcome, FetchFailure):
        assert outcome.detail.isprintable()
    else:
        assert all(character >= " " for name, value in outcome.response_headers for character in name + value)
