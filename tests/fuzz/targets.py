"""What is fuzzed: a strategy for hostile bytes or texts, and what must take any of them."""

from __future__ import annotations

import contextlib
import gzip
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import strategies as st

from connectors.body import framing_of, read_body
from connectors.encoding import decode_body
from connectors.fetchfault import FetchFault
from connectors.limits import FetchLimits
from connectors.reply import read_head
from connectors.warc_read import DamagedWarc, http_payload, iter_records, read_payload
from crawler.charset import decide, decode
from crawler.parse import ParseInput, parse_page
from crawler.policy import PolicyBook, PolicyError, parse_policy
from crawler.politeness import parse_retry_after
from crawler.robots import RobotsRules
from crawler.urls import NormalUrl, host_of, normalise, port_of, registered_domain, surt_key
from crawler.visit import reply_of
from schemas.fetch import Capture
from tests.fuzz.words import HTML_WORDS, HTTP_WORDS, POLICY_WORDS, ROBOTS_WORDS, URL_WORDS

GOLDEN = (Path(__file__).parents[1] / "data" / "golden.warc").read_bytes()
PAGE = "http://a.example/dir/page.html"
CAP = 50_000


class Target(NamedTuple):
    """``run`` takes any input of ``inputs`` within ``seconds``, raising nothing; asserts what must hold."""

    name: str
    inputs: st.SearchStrategy[Any]
    run: Callable[[Any], None]
    seconds: float


def pieces_of(*words: bytes) -> st.SearchStrategy[bytes]:
    """Return inputs made of words of a format in any order, random bytes between them, some repeated often."""
    one = st.one_of(st.sampled_from(words), st.binary(max_size=12))
    few = st.lists(one, max_size=40).map(b"".join)
    often = st.builds(
        lambda unit, count: unit * count, st.lists(one, max_size=4).map(b"".join), st.integers(2, 3000)
    )
    return st.one_of(few, few, st.builds(lambda *parts: b"".join(parts), few, often, few))


def mutated(sample: bytes) -> st.SearchStrategy[bytes]:
    """Return a good input with some bytes replaced, cut out or put in."""
    edit = st.tuples(st.integers(0, len(sample)), st.integers(0, 40), st.binary(max_size=40))

    def apply(edits: list[tuple[int, int, bytes]]) -> bytes:
        data = sample
        for at, gone, new in edits:
            data = data[:at] + new + data[at + gone :]
        return data

    return st.lists(edit, min_size=1, max_size=5).map(apply)


def _reply(data: bytes) -> None:
    stream = io.BufferedReader(io.BytesIO(data))  # type: ignore[arg-type]
    try:
        head = read_head(stream, FetchLimits(max_header_bytes=4096, max_headers=32))
        body = read_body(stream, framing_of(head), CAP)
    except FetchFault as fault:
        assert fault.detail.isprintable()
        return
    texts = [head.reason_phrase, *(text for field in head.headers for text in field)]
    assert not any(ord(character) < 32 and character != "\t" for text in texts for character in text)
    assert len(body.data) <= CAP
    coding = ",".join(head.values("content-encoding"))
    assert len(decode_body(body.data, coding, CAP).data) <= CAP
    heard = reply_of(
        Capture(PAGE, 0, 1, None, "", (), head.protocol, head.status, "", head.headers, body.data)
    )
    parse_retry_after(heard.retry_after, 0.0)
    normalise(heard.location or "", PAGE)


def _coding(given: tuple[bytes, str]) -> None:
    data, coding = given
    assert len(decode_body(data, coding, CAP).data) <= CAP


def _robots(data: bytes) -> None:
    rules = RobotsRules(data, "roundcrawl/1.0")
    for path in ("/", "/a", "/a/b?c=d&e=f", "/%7Ea/%E2%82%AC", "/robots.txt"):
        verdict = rules.verdict(f"http://a.example{path}")
        assert verdict.allowed == (verdict.rule is None)
    assert (rules.crawl_delay_seconds or 0.0) >= 0.0


def _page(given: tuple[bytes, str | None]) -> None:
    data, media_type = given
    page = parse_page(ParseInput(PAGE, data, media_type, "noindex\nx: y", "roundcrawl"))
    kept = [page.title or "", page.text, *(link.anchor for link in page.links)]
    "".join(kept).encode("utf-8")
    assert not any(character in text for text in kept for character in "\0\x1b\x07\x08")
    assert all(normalise(link.target_url) == NormalUrl(link.target_url) for link in page.links)


def _url(given: tuple[str, str]) -> None:
    raw, base = given
    result = normalise(raw, base)
    if isinstance(result, NormalUrl):
        assert normalise(result.url) == result
        assert result.url.isascii() and result.url.isprintable() and "@" not in result.url.split("/")[2]
        assert (
            surt_key(result.url)
            and registered_domain(host_of(result.url))
            and 0 <= port_of(result.url) < 65536
        )


def _charset(given: tuple[bytes, str | None]) -> None:
    data, media_type = given
    choice = decide(data, media_type)
    assert choice == decide(data, media_type)
    decode(data, choice).encode("utf-8")


def _warc(data: bytes) -> None:
    with contextlib.suppress(DamagedWarc):
        for record in iter_records(io.BytesIO(data)):
            with contextlib.suppress(DamagedWarc):
                http_payload(record)
    with contextlib.suppress(DamagedWarc):
        read_payload(data)


def _policy(text: str) -> None:
    try:
        book = PolicyBook(parse_policy(text))
    except PolicyError as error:
        assert "\n" not in str(error)
        return
    assert PolicyBook.from_json(book.to_json()) == book
    book.rules_for("www.a.example")


TYPES = st.sampled_from(
    [None, "text/html", "text/plain; charset=utf-16", "text/html; charset=x", "text/xml", ";", 'a/b;c="']
)
CODINGS = st.sampled_from(["gzip", "deflate", "br", "zstd", "gzip, gzip", "br, gzip", "x", "gzip," * 9])
PACKED = st.one_of(st.binary(max_size=200), mutated(gzip.compress(b"words " * 500, mtime=0)))

HEADED = st.builds(
    lambda head, fields, rest: b"".join((head, *fields, b"\r\n", rest)),
    st.sampled_from(HTTP_WORDS[:3]),
    st.lists(
        st.sampled_from([word for word in HTTP_WORDS if b": " in word or word == b" fold\r\n"]), max_size=6
    ),
    pieces_of(*HTTP_WORDS),
)

TARGETS = (
    Target("http replies", st.one_of(st.binary(max_size=300), HEADED, HEADED), _reply, 1.0),
    Target("content codings", st.tuples(PACKED, CODINGS), _coding, 1.0),
    Target("robots.txt", st.one_of(st.binary(max_size=300), pieces_of(*ROBOTS_WORDS)), _robots, 1.0),
    Target("html", st.tuples(st.one_of(st.binary(max_size=300), pieces_of(*HTML_WORDS)), TYPES), _page, 5.0),
    Target(
        "urls",
        st.tuples(
            st.lists(st.one_of(URL_WORDS, st.text(max_size=5)), max_size=20).map("".join),
            st.sampled_from([PAGE, "http://[::1]/", "https://a.example:8443/?q#f"]),
        ),
        _url,
        1.0,
    ),
    Target(
        "charsets",
        st.tuples(st.one_of(st.binary(max_size=300), pieces_of(*HTML_WORDS)), TYPES),
        _charset,
        1.0,
    ),
    Target(
        "warc files",
        st.one_of(st.binary(max_size=300), mutated(GOLDEN), mutated(gzip.compress(GOLDEN, mtime=0))),
        _warc,
        1.0,
    ),
    Target(
        "policy files",
        st.one_of(st.text(max_size=100), st.lists(POLICY_WORDS, max_size=30).map("".join)),
        _policy,
        1.0,
    ),
)
