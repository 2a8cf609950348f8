"""The type of a body by its first bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.sniff import sniff

CASES = [
    (b"<!DOCTYPE html><html>", "text/html"),
    (b"\n\t <!doctype HTML PUBLIC>", "text/html"),
    (b"<html lang=en>", "text/html"),
    (b"<HTML/>", "text/html"),
    (b"<!-- saved from --><p>", "text/html"),
    (b"<meta charset=utf-8><title>x</title>", "text/html"),
    (b"<p>only a paragraph", "text/html"),
    (b"<h2 class=x>", "text/html"),
    (b"\xef\xbb\xbf<!doctype html>", "text/html"),
    ("\ufeff<html>".encode("utf-16-le"), "text/html"),
    ("\ufeff<html>".encode("utf-16-be"), "text/html"),
    (b"<bogus>", "text/plain"),
    (b"<html", "text/html"),
    (b"<htmlx>", "text/plain"),
    (b"BMW builds cars", "text/plain"),
    (b"ID3 tags explained", "text/plain"),
    (b"BM\x36\x84\0\0", "image/bmp"),
    (b"<paragraph>", "text/plain"),
    (b'<?xml version="1.0"?><note/>', "text/xml"),
    (
        b'<?xml version="1.0"?>\n<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN">'
        b'<html xmlns="http://www.w3.org/1999/xhtml">',
        "application/xhtml+xml",
    ),
    (b'<?xml version="1.0"?><!-- c --><rss version="2.0">', "application/rss+xml"),
    (b"<rss version=2.0>", "application/rss+xml"),
    (b'<feed xmlns="http://www.w3.org/2005/Atom">', "application/atom+xml"),
    (b'<?xml version="1.0"?><rdf:RDF xmlns:rdf="x">', "application/rdf+xml"),
    (b'<svg xmlns="http://www.w3.org/2000/svg">', "image/svg+xml"),
    (b"User-agent: *\nDisallow: /\n", "text/plain"),
    ("plain é text".encode(), "text/plain"),
    ("plain é text".encode("latin-1"), "text/plain"),
    ("\ufeffplain".encode("utf-16-le"), "text/plain"),
    (b"   ", "text/plain"),
    (b'{"a": 1}', "application/json"),
    (b'[\n {"a": 1}', "application/json"),
    (b"[1] A footnote", "text/plain"),
    (b"{curly} prose", "text/plain"),
    (b"%PDF-1.7", "application/pdf"),
    (b"%!PS-Adobe-3.0", "application/postscript"),
    (b"\x89PNG\r\n\x1a\n\0\0", "image/png"),
    (b"\xff\xd8\xff\xe0", "image/jpeg"),
    (b"GIF89a\x01\0\x01\0", "image/gif"),
    (b"RIFF\x10\0\0\0WEBPVP8 ", "image/webp"),
    (b"RIFF\x10\0\0\0WAVEfmt ", "audio/wave"),
    (b"RIFF\x10\0\0\0AVI LIST", "video/avi"),
    (b"FORM\0\0\0\0AIFF", "audio/aiff"),
    (b"XXXX\0\0\0\0WAVE", "application/octet-stream"),
    (b"\0\0\1\0", "image/x-icon"),
    (b"\0\0\0\x1cftypavif", "image/avif"),
    (b"\0\0\0\x18ftypmp42", "video/mp4"),
    (b"\x1a\x45\xdf\xa3\x42\x82\x84webm", "video/webm"),
    (b"\x1a\x45\xdf\xa3\x42\x82\x88matroska", "video/x-matroska"),
    (b"ID3\x03\0", "audio/mpeg"),
    (b"\xff\xfb\x90\x64\0", "audio/mpeg"),
    (b"OggS\0", "application/ogg"),
    (b"\x1f\x8b\x08\0", "application/x-gzip"),
    (b"PK\x03\x04", "application/zip"),
    (b"wOF2\0\1", "font/woff2"),
    (b"\x01\x02\x03", "application/octet-stream"),
    (b"text with a NUL \0", "application/octet-stream"),
]


@pytest.mark.parametrize(("head", "mime"), CASES)
def test_a_body_is_known_by_its_beginning(head: bytes, mime: str) -> None:
    assert sniff(head) == mime


def test_an_empty_body_has_no_type() -> None:
    assert sniff(b"") is None


def test_only_the_beginning_counts() -> None:
    assert sniff(b"a" * 1445 + b"\0") == "text/plain"


@given(st.binary(max_size=64) | st.binary(max_size=32).map(lambda tail: b"<?xml " + tail))
def test_every_body_has_a_type(head: bytes) -> None:
    kind = sniff(head)
    assert (kind is None) == (head == b"")
