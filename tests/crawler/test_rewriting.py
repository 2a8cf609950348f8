"""What is said about a URL that was put into normal form."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crawler.rewriting import changes
from crawler.urls import NormalUrl, normalise

CASES = [
    ("http://a.example/x?b=1", ()),
    (" http://a.example/\n", ("white space removed",)),
    ("HTTP://a.example/", ("scheme in lower case",)),
    ("http://A.example/", ("host in lower case",)),
    ("http://a.example./", ("host written as a.example",)),
    ("http://faß.example/", ("host written as xn--fa-hia.example",)),
    ("http://u:p@a.example:80/", ("userinfo removed", "default port removed")),
    ("http://a.example:08080/", ("port written as 8080",)),
    ("http://a.example", ("path / added",)),
    ("http://a.example/x/../y", ("dot segments resolved",)),
    ("http://a.example/x;jsessionid=1E6F", ("session id removed from the path",)),
    ("http://a.example/%7eu", ("escapes of the path unified",)),
    ("http://a.example/é", ("escapes of the path unified",)),
    ("http://a.example\\x", ("backslashes read as slashes",)),
    ("http://a.example/?", ("empty query removed",)),
    ("http://a.example/?b=1&a=2", ("parameters sorted by name",)),
    ("http://a.example/?utm_source=x&a=2&fbclid=1", ("parameters removed: fbclid, utm_source",)),
    ("http://a.example/?utm_source=x", ("parameters removed: utm_source",)),
    ("http://a.example/?b=%c3", ("escapes of the query unified",)),
    ("http://a.example/#top", ("fragment removed",)),
    ("http:a.example/", ("slashes after the scheme put right",)),
    (
        "http://Example.com:80/a/../b?b=2&utm_source=x&a=1#top",
        (
            "host in lower case",
            "default port removed",
            "dot segments resolved",
            "parameters removed: utm_source",
            "parameters sorted by name",
            "fragment removed",
        ),
    ),
]


@pytest.mark.parametrize(("raw", "said"), CASES)
def test_each_change_is_said(raw: str, said: tuple[str, ...]) -> None:
    normal = normalise(raw)
    assert isinstance(normal, NormalUrl)
    assert changes(raw, normal.url) == said


ODD = st.text(st.sampled_from("aA.:/?#@&=;%2e7\\ \t\né[]|()_"), max_size=25)


@given(ODD, st.sampled_from(["http://h", "HTTPS://H.example", "http:", " http://u@h.example:80"]))
@example("/?&&", "http://h")
@example("/(S(aaaaaaaaaaaaaaaaaaaaaaaa))/x", "http://h")
def test_something_is_said_if_and_only_if_something_changed(tail: str, front: str) -> None:
    raw = front + tail
    normal = normalise(raw)
    if isinstance(normal, NormalUrl):
        assert bool(changes(raw, normal.url)) == (raw != normal.url)
        assert changes(normal.url, normal.url) == ()
