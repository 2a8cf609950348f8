from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.mime import MediaType, parse_content_type, parse_media_type


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("text/html", MediaType("text/html")),
        (" TEXT/Html ; Charset=UTF-8 ", MediaType("text/html", (("charset", "UTF-8"),))),
        ('text/html;charset="a\\"b;c"x;q=1', MediaType("text/html", (("charset", 'a"b;c'), ("q", "1")))),
        ("text/html;a;=b;c= ;charset=x;charset=y", MediaType("text/html", (("charset", "x"),))),
        ('text/html;charset="open', MediaType("text/html", (("charset", "open"),))),
        ('text/html;charset="\\', MediaType("text/html", (("charset", "\\"),))),
        ("", None),
        ("text", None),
        ("text/", None),
        ("te xt/html", None),
        ("text/ht\nml", None),
    ],
)
def test_one_media_type(text: str, expected: MediaType | None) -> None:
    assert parse_media_type(text) == expected


@pytest.mark.parametrize(
    ("header", "essence", "charset"),
    [
        ("text/html; charset=a, text/html", "text/html", "a"),
        ("text/html; charset=a, text/html; charset=b", "text/html", "b"),
        ("text/html; charset=a, text/plain", "text/plain", None),
        ("text/html, */*; charset=a", "text/html", None),
        ("text/html, nonsense", "text/html", None),
        ('text/html; charset="a,b", text/html', "text/html", "a,b"),
    ],
)
def test_several_content_types_in_one_header(header: str, essence: str, charset: str | None) -> None:
    read = parse_content_type(header)
    assert read is not None
    assert (read.essence, read.charset) == (essence, charset)


@pytest.mark.parametrize("header", [None, "", ",", "*/*", ";;;", '"'])
def test_a_header_without_a_type(header: str | None) -> None:
    assert parse_content_type(header) is None


@given(st.text(alphabet='ab/;=",\\ \x00é'))
def test_any_header_is_read(header: str) -> None:
    read = parse_content_type(header)
    assert read is None or read.essence.isascii()


def test_a_long_header_takes_linear_time() -> None:
    assert parse_content_type("text/html" + ';a="' * 100_000) == MediaType("text/html", (("a", ";a="),))
