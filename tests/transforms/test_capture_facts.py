from __future__ import annotations

import gzip

from tests.fakes.captures import capture
from transforms.capture_facts import metadata_of

PAGE = '<p>größer <a href="/x">x</a> <a href="/y">y</a>'.encode("latin-1")


def test_a_page_has_every_fact() -> None:
    headers = (("Content-Type", "text/html; charset=iso-8859-1"),)
    page = capture("https://a.example/", PAGE, response_headers=headers)
    facts = metadata_of(page, "https://b.example/", 10_000)
    duration = facts.pop("fetchTimeMs")
    assert duration.isdigit()
    assert facts == {"via": "https://b.example/", "charset-detected": "windows-1252", "outlinks": "2"}


def test_a_coded_body_is_looked_into() -> None:
    headers = (("Content-Type", "text/html; charset=iso-8859-1"), ("Content-Encoding", "gzip"))
    page = capture("https://a.example/", gzip.compress(PAGE), response_headers=headers)
    assert metadata_of(page, None, 10_000)["outlinks"] == "2"


def test_no_more_is_decoded_than_allowed() -> None:
    page = capture("https://a.example/", PAGE + PAGE, response_headers=(("Content-Type", "text/html"),))
    assert metadata_of(page, None, len(PAGE))["outlinks"] == "2"


def test_what_is_not_known_has_no_field() -> None:
    empty = capture("https://a.example/", b"", status=304, response_headers=())
    image = capture(
        "https://a.example/i", b"\x89PNG\r\n\x1a\n", response_headers=(("Content-Type", "image/png"),)
    )
    assert set(metadata_of(empty, None, 10_000)) == set(metadata_of(image, None, 10_000)) == {"fetchTimeMs"}


def test_plain_text_has_no_links() -> None:
    text = capture("https://a.example/t", b"just text", response_headers=(("Content-Type", "text/plain"),))
    assert set(metadata_of(text, None, 10_000)) == {"fetchTimeMs", "charset-detected"}
