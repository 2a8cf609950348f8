"""SURT keys against the reference implementation that index readers use."""

from __future__ import annotations

import pytest
import surt
from hypothesis import given, settings
from hypothesis import strategies as st

from crawler.surt import surt_key
from crawler.urls import NormalUrl, normalise


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://www.example.com/Path/?Query=1", "com,example)/path?query=1"),
        ("https://www2.example.com/", "com,example)/"),
        ("http://www.www.example.com/", "com,example,www)/"),
        ("http://example.com:8080/a", "com,example:8080)/a"),
        ("http://1.2.3.4:81/x", "4,3,2,1:81)/x"),
        ("http://[::1]/a", "::1)/a"),
        ("http://h/a//b/", "h)/a/b"),
        ("http://h/%252525%C3%A9", "h)/%25%c3%a9"),
        ("http://h/a?a=2&b&a=1", "h)/a?a=1&a=2&b"),
        ("http://h/%252e%252e/x/%252e/y", "h)/../x/y"),
        ("mailto:me@example.com", "mailto:me@example.com"),
    ],
)
def test_key(url, key):
    assert surt_key(url) == key


PIECES = st.sampled_from(
    [
        "%",
        "%25",
        "25",
        "%252e",
        ".",
        "..",
        "/",
        "//",
        "?",
        "&",
        "=",
        ";",
        ":",
        "a",
        "B",
        "1",
        "%41",
        "%2F",
        "é",
        "%E9",
        "+",
        "%20",
        "'",
        "|",
        "[",
        "%3F",
        "%23",
        "%00",
        "index.html",
        "www.",
        "~",
    ]
)
HOSTS = st.sampled_from(
    ["h", "example.com", "www.Example.com", "[::1]", "127.1", "www1.h.com:8080", "h_x.co.uk"]
)


@settings(max_examples=800)
@given(st.sampled_from(["http://", "https://"]), HOSTS, st.lists(PIECES, max_size=12).map("".join))
def test_key_of_a_normal_url_is_the_reference_key(scheme, host, tail):
    normal = normalise(f"{scheme}{host}/{tail}")
    assert isinstance(normal, NormalUrl)
    assert surt_key(normal.url) == surt.surt(normal.url)


def test_a_deep_chain_of_escapes_costs_little():
    assert surt_key("http://h/" + "%" + "25" * 30_000).startswith("h)/%25")
