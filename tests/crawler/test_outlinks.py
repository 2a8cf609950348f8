from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.outlinks import count_outlinks


@pytest.mark.parametrize(
    ("body", "links"),
    [
        (b"", 0),
        (b"<a href=/x>x</a><A class=y HREF = '/y'>", 2),
        (b"<map><area shape=rect href=/x></map>", 1),
        (b"<a name=x>no link</a><abbr href=/x><link href=/x>", 0),
        (b"<!-- <a href=/x> --><a href=/y>", 1),
        (b"<!--><a href=/y>", 1),
        (b"<script>'<a href=/x>'</script><a href=/y>", 1),
        (b"<a href=/y><script>'<a href=/x>'", 1),
        (b"<a href=/y><!-- <a href=/x>", 1),
        (b"<a <a <a <a href=/x>", 1),
    ],
)
def test_links_are_counted_as_a_reader_sees_them(body: bytes, links: int) -> None:
    assert count_outlinks(body, "utf-8") == links


def test_wide_units_are_read() -> None:
    assert count_outlinks("<a href=/x>ü".encode("utf-16-le"), "utf-16le") == 1


@given(
    st.lists(st.sampled_from([b"<a ", b"href", b"=", b">", b"<!--", b"-->", b"<script", b"</script", b"\0"]))
)
def test_anything_is_counted(parts: list[bytes]) -> None:
    body = b"".join(parts)
    assert 0 <= count_outlinks(body, "utf-8") <= body.count(b"<a ")


@pytest.mark.parametrize(
    "piece", [b"<!--", b"<a ", b"<script", b"<a href", b"<a href  ", b"href=", b"<!-- --"]
)
@pytest.mark.timeout(20)
def test_five_megabytes_of_anything_are_one_scan(piece: bytes) -> None:
    assert count_outlinks(piece * (5_000_000 // len(piece)), "utf-8") >= 0
