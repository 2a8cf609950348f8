"""What a session hears of a capture: header fields as the rules read them."""

from __future__ import annotations

import pytest

from crawler.directives import Directives, read_directives
from crawler.outcomes import FAILED_RETRY, Judgement, judge
from crawler.visit import FetchPolicy, Reply, Visit, reply_of, request_for
from schemas.fetch import Capture, FetchFailure


def captured(*headers: tuple[str, str]) -> Capture:
    return Capture(
        "http://a.example/", 1.0, 2.0, "192.0.2.1", "GET / HTTP/1.1", (), "HTTP/1.1", 200, "OK", headers, b""
    )


def test_each_robots_tag_field_is_a_line_of_its_own() -> None:
    reply = reply_of(captured(("X-Robots-Tag", "otherbot: all"), ("x-robots-tag", " noindex ")))
    assert reply.robots_tag == "otherbot: all\nnoindex"
    said = read_directives((), reply.robots_tag.split("\n"), "roundcrawl")
    assert said == Directives(noindex=True)


def test_a_field_that_does_not_come_is_none() -> None:
    reply = reply_of(captured())
    assert (reply.robots_tag, reply.location, reply.cookies) == (None, None, ())


@pytest.mark.parametrize(
    ("field", "cookies"),
    [
        ("a=1; Path=/", (("a", "1"),)),
        ("a=", (("a", ""),)),
        ("=1", ()),
        ("novalue", ()),
        (" a = b=c ; Secure", (("a", "b=c"),)),
    ],
)
def test_cookies_have_a_name(field: str, cookies: tuple) -> None:
    assert reply_of(captured(("Set-Cookie", field))).cookies == cookies


def test_fields_that_are_kept_for_ever_are_short() -> None:
    long = "x" * 2000
    names = ("ETag", "Last-Modified", "Content-Type")
    reply = reply_of(captured(*((name, long) for name in names), ("X-Robots-Tag", long * 50)))
    assert (reply.etag, reply.last_modified, reply.content_type) == (None, None, None)
    assert len(reply.robots_tag) == 16_384


def test_codings_of_several_fields_are_one_list() -> None:
    reply = reply_of(captured(("Content-Encoding", "gzip"), ("Content-Encoding", "br")))
    assert reply.content_encoding == "gzip, br"


def test_no_more_cookies_go_back_than_a_server_reads() -> None:
    cookies = tuple(("a.example", f"c{number}", "v" * 1000) for number in range(100))
    request = request_for(
        Visit("hop", "http://a.example/", "a.example", cookies=cookies), FetchPolicy(), False
    )
    assert [name for name, _ in request.cookies] == [f"c{number}" for number in range(8)]


def test_a_connection_that_takes_too_long_is_a_timeout_like_any_other() -> None:
    reply = reply_of(FetchFailure("http://a.example/", "connect_timeout", "connect: timed out", 1.0, 2.0))
    assert judge(reply, 0, 5, conditional=False) == Judgement(FAILED_RETRY, "timeout", 1)
    assert judge(Reply(1.0, 2.0, failure="timeout"), 0, 5, conditional=False).reason == "timeout"
