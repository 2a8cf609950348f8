from __future__ import annotations

import base64
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.parse import ParseInput, content_hash, is_page_type, page_kind, parse_page
from crawler.sniff import sniff
from schemas.page import Link, ParsedPage

URL = "https://site.example/p"
SENTENCE = "Der Fluss fror früh, und die Fährleute flickten ihre Netze am Öfchen. "
HTML = (
    "<!doctype html><html lang=de><head><meta charset=iso-8859-1><title>Größe</title>"
    "<link rel=canonical href=/kanonisch><meta name=robots content=nofollow></head>"
    f"<body><a href='?q=ä'>Übersicht</a><a href='mailto:x@y'>Post</a><p>{SENTENCE * 5}</p></body></html>"
)


def test_a_page_whole() -> None:
    body = HTML.encode("windows-1252")
    page = parse_page(ParseInput(URL, body, "text/html", "noindex", "roundcrawl"))
    assert page == ParsedPage(
        url=URL,
        title="Größe",
        language="de",
        charset="windows-1252",
        charset_source="meta",
        canonical_url="https://site.example/kanonisch",
        noindex=True,
        nofollow=True,
        text=page.text,
        empty_reason=None,
        content_hash=base64.b32encode(hashlib.sha1(body).digest()).decode(),
        links=(Link("https://site.example/p?q=%E4", "Übersicht", ""),),
        rejected_links=(("unsupported_scheme", 1),),
        refresh_url=None,
    )
    assert page.text.count("früh") == 5


def test_plain_text_has_no_markup_and_no_links() -> None:
    page = parse_page(ParseInput(URL, b"<a href=/x>x</a> \xe4", "text/plain; charset=latin1", "none"))
    assert (page.text, page.links, page.title) == ("<a href=/x>x</a> ä", (), None)
    assert (page.noindex, page.nofollow) == (True, True)


def test_header_fields_stand_on_lines_of_their_own() -> None:
    page = parse_page(ParseInput(URL, b"<p>", "text/html", "otherbot: noindex\nnofollow", "roundcrawl"))
    assert (page.noindex, page.nofollow) == (False, True)


def test_an_empty_body() -> None:
    page = parse_page(ParseInput(URL, b"", "text/html"))
    assert (page.text, page.empty_reason, page.charset_source) == ("", "empty_body", "default")
    assert page.content_hash == "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"


@pytest.mark.parametrize(
    ("content_type", "body", "kind"),
    [
        ("text/html", b"<html>", "html"),
        ("TEXT/HTML; charset=x", b"<html>", "html"),
        ("application/xhtml+xml", b"<?xml version='1.0'?><html>", "html"),
        ("application/xml", b"<?xml version='1.0'?><html>", "html"),
        ("text/xml", b"<?xml version='1.0'?><html>", "html"),
        ("text/html", b"just words", "html"),
        ("text/html", b"", "html"),
        ("text/html", b"<\0h\0t\0m\0l\0>\0", "html"),
        ("text/html, text/html", b"<html>", "html"),
        ("text/plain", b"words", "plain"),
        ("text/plain", b"<html>", "plain"),
        ("text/plain", b'{"a": 1}', "plain"),
        (None, b"<!doctype html>", "html"),
        ("", b"words", "plain"),
        ("nonsense", b"<html>", "html"),
        ("unknown/unknown", b"<html>", "html"),
        ("text/html", b"%PDF-1.7", None),
        ("text/html", b"\x89PNG\r\n\x1a\n\0\0", None),
        ("text/html", b"<?xml version='1.0'?><rss>", None),
        ("text/plain", b"\x1f\x8b\x08\0\0\0\0\0", None),
        ("text/plain", b"\0\1\2\3", None),
        ("application/xml", b"<?xml version='1.0'?><data>", None),
        ("application/json", b'{"a": 1}', None),
        ("application/octet-stream", b"<html>", None),
        ("image/svg+xml", b"<svg>", None),
        ("application/pdf", b"%PDF-1.7", None),
        (None, b"%PDF-1.7", None),
        (None, b'{"a": 1}', None),
        (None, b"", None),
    ],
)
def test_what_is_a_page(content_type: str | None, body: bytes, kind: str | None) -> None:
    assert page_kind(content_type, sniff(body)) == kind
    assert is_page_type(content_type, sniff(body)) == (kind is not None)


def test_content_hash_is_that_of_warc_digests() -> None:
    assert content_hash(b"") == "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"


def check_sound(page: ParsedPage) -> None:
    """Assert what holds of every parsed page, whatever the bytes."""
    repr(page).encode("utf-8")
    for text in (page.title or "", page.text, *(part for link in page.links for part in link)):
        text.encode("utf-8")
        assert not set(text) & set(map(chr, [*range(9), *range(11, 32), *range(127, 160)]))
    assert bool(page.text) == (page.empty_reason is None)
    assert len({link.target_url for link in page.links}) == len(page.links)


CONTENT_TYPES = st.sampled_from(
    [None, "text/html", "text/plain", "text/html; charset=gb2312", "a/b", "\xff;,"]
)
PIECES = [
    *(b"<html>", b"<p>text ", b"<a href=", b"'x' >", b"</a>", b"<!--", b"-->", b"<title>", b"</title>"),
    *(
        b"<meta charset=",
        b"utf-16",
        b"iso-2022-jp>",
        b"\x1b$B",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"\xed\xa0\x80",
    ),
    *(b"\0", b"&#xD83D;", b"&#0;", b"<table><tr><td>", b"<ul><li>", b"<?xml version='1.0' encoding='x'?>"),
    *(b"<![CDATA[", b"]]>", b"<svg>", b"<template>", b"<noscript>", b"\x80\x81\xfe", "é漢😀".encode(), b"<"),
    *(b"<article><p>" + b"Some words of a sentence. " * 20, b"<base href=//[>", b"<script>", b"</script>"),
]


@given(st.binary(max_size=400), CONTENT_TYPES, st.text(max_size=30))
def test_any_bytes_make_a_page(body: bytes, content_type: str | None, robots_tag: str) -> None:
    check_sound(parse_page(ParseInput(URL, body, content_type, robots_tag, "roundcrawl")))


@given(st.lists(st.sampled_from(PIECES), max_size=30), CONTENT_TYPES)
def test_any_markup_makes_a_page(pieces: list[bytes], content_type: str | None) -> None:
    task = ParseInput(URL, b"".join(pieces), content_type, None, "roundcrawl")
    page = parse_page(task)
    check_sound(page)
    assert page == parse_page(task)
