from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.html import MAX_TITLE_CHARS, read_html
from crawler.links import MAX_ANCHOR_CHARS, MAX_REL_CHARS, LinkCollector
from crawler.scripted import MAX_HEAD_CHARS, without_head_noscript
from schemas.page import Link

PAGE = "https://site.example/dir/page.html"


def links(html: str, encoding: str = "utf-8") -> list[tuple[str, str, str]]:
    return [tuple(link) for link in read_html(html, PAGE, encoding).links]


def targets(html: str, encoding: str = "utf-8") -> list[str]:
    return [link.target_url for link in read_html(html, PAGE, encoding).links]


def test_links_of_every_kind_in_document_order() -> None:
    html = """<link rel="stylesheet" href="/no.css"><link rel="Next" href="/next"><a href="a">A</a>
        <map><area href="/area" alt="x"></map><iframe src="//frames.example/f"></iframe><a>none</a>
        <a name="n">none</a><svg><a href="/svg">in svg</a></svg><template><a href="/t">no</a></template>
        <link rel="alternate" href="/feed"><link rel="prev start" href="/prev"><img src="/no.png">"""
    assert links(html) == [
        ("https://site.example/next", "", "next"),
        ("https://site.example/dir/a", "A", ""),
        ("https://site.example/area", "", ""),
        ("https://frames.example/f", "", ""),
        ("https://site.example/svg", "in svg", ""),
        ("https://site.example/prev", "", "prev start"),
    ]
    assert targets("<frameset><frame src=/one><frame src=/two></frameset>") == [
        "https://site.example/one",
        "https://site.example/two",
    ]


@pytest.mark.parametrize(
    ("href", "target"),
    [
        (" \n a\tb\n c ", "https://site.example/dir/ab%20c"),
        ("?q=1#top", "https://site.example/dir/page.html?q=1"),
        ("", "https://site.example/dir/page.html"),
        ("#top", "https://site.example/dir/page.html"),
        ("..\\up", "https://site.example/up"),
        ("HTTP://OTHER.example:80", "http://other.example/"),
        ("/a&amp;b&#x26;c", "https://site.example/a&b&c"),
        ("/a\0b", "https://site.example/a%EF%BF%BDb"),
    ],
)
def test_hrefs_are_read_as_browsers_read_them(href: str, target: str) -> None:
    assert targets(f'<a href="{href}">x</a>') == [target]


def test_each_target_once_with_its_first_anchor_and_rel() -> None:
    html = '<a href=x rel="NoFollow UGC nofollow"> a\n<b>b</b> </a><a href=x>2</a><a href=./x#f>3</a>'
    assert links(html) == [("https://site.example/dir/x", "a b", "nofollow ugc")]


def test_anchors_and_rels_are_short_and_printable() -> None:
    html = f'<a href=x rel="{"word" * 100}">\x1b[31m{"a" * 2000}\x07\x85</a>'
    ((_, anchor, rel),) = links(html)
    assert anchor == "[31m" + "a" * (MAX_ANCHOR_CHARS - 4)
    assert len(rel) == MAX_REL_CHARS


def test_a_query_is_meant_in_the_encoding_of_the_page() -> None:
    assert targets('<a href="/é?q=é">', "windows-1252") == ["https://site.example/%C3%A9?q=%E9"]
    assert targets('<a href="/é?q=é">') == ["https://site.example/%C3%A9?q=%C3%A9"]
    assert targets('<a href="?q=é">', "koi8-r") == ["https://site.example/dir/page.html?q=%26%23233%3B"]


def test_rejected_hrefs_are_counted_by_reason() -> None:
    html = """<a href="javascript:x()"><a href="mailto:a@b"><a href="data:text/html,x"><a href="ftp://f/">
        <a href="http://[bad"><a href="ok">"""
    page = read_html(html, PAGE)
    assert [link.target_url for link in page.links] == ["https://site.example/dir/ok"]
    assert page.rejected_links == (("invalid_url", 1), ("unsupported_scheme", 4))


def test_a_page_has_a_most_of_links() -> None:
    html = "".join(f"<a href=/{number}>{number}</a>" for number in range(30))
    page = read_html(html, PAGE, max_links=10)
    assert [link.anchor for link in page.links] == [str(number) for number in range(10)]
    assert page.rejected_links == (("too_many_links", 20),)


def test_a_long_base_does_not_swell_the_links() -> None:
    def links_below(base_chars: int):
        anchors = "".join(f"<a href={number:04d}>" for number in range(5000))
        return read_html(f"<base href='http://b.example/{'x' * base_chars}/'>{anchors}", PAGE)

    page = links_below(1000)
    assert len(page.links) == 2_097_152 // len(page.links[0].target_url) + 1
    assert page.rejected_links == (("too_many_links", 5000 - len(page.links)),)
    assert links_below(60_000).rejected_links == (("url_too_long", 5000),)


@pytest.mark.parametrize(
    ("head", "base"),
    [
        ("", PAGE),
        ("<base href=/b/>", "https://site.example/b/"),
        ("<base target=_top><base href=/b/><base href=/c/>", "https://site.example/b/"),
        ("<base href='http://[bad'>", PAGE),
        ("<base href='javascript:x'>", PAGE),
        ("<noscript><base href=/no/></noscript>", PAGE),
        ("<script>'<base href=/no/>'</script><base href=/b/>", "https://site.example/b/"),
    ],
)
def test_base(head: str, base: str) -> None:
    page = read_html(f"<head>{head}</head><a href=rel>", PAGE)
    assert page.base_url == base
    assert page.links[0].target_url == base.rpartition("/")[0] + "/rel"


@pytest.mark.parametrize(
    ("html", "title"),
    [
        ("<title> A\n title </title>", "A title"),
        ("<title>&lt;b&gt; \x1b[0m</title>", "<b> [0m"),
        ("<title></title>", None),
        ("<p>none</p>", None),
        ("<svg><title>drawing</title></svg><body><title>late</title>", "late"),
        ("<title>first</title><title>second</title>", "first"),
    ],
)
def test_title(html: str, title: str | None) -> None:
    assert read_html(html, PAGE).title == title


def test_a_long_title_is_cut() -> None:
    assert read_html(f"<title>{'t' * 5000}</title>", PAGE).title == "t" * MAX_TITLE_CHARS


@pytest.mark.parametrize(
    ("html", "language"),
    [
        ("<html lang=EN>", "en"),
        ("<html lang=pt_br>", "pt-BR"),
        ("<html lang=zh-hant-TW>", "zh-Hant-TW"),
        ("<html lang=' de '>", "de"),
        ("<html lang='{{lang}}'>", None),
        ("<html lang=''>", None),
        ("<html lang='{{lang}}'><meta http-equiv=Content-Language content='fr, en'>", "fr"),
        ("<p lang=fr>", None),
    ],
)
def test_language(html: str, language: str | None) -> None:
    assert read_html(html, PAGE).language == language


@pytest.mark.parametrize(
    ("html", "canonical"),
    [
        ("<link rel=canonical href='/c?utm_source=x#f'>", "https://site.example/c"),
        ("<link rel='Canonical nofollow' href=c><link rel=canonical href=./c>", "https://site.example/dir/c"),
        ("<link rel=canonical href=/one><link rel=canonical href=/two>", None),
        ("<link rel=canonical href='javascript:x'>", None),
        ("<link rel=canonical>", None),
        ("<head><noscript><img src=p></noscript><link rel=canonical href=/c>", "https://site.example/c"),
    ],
)
def test_canonical(html: str, canonical: str | None) -> None:
    assert read_html(html, PAGE).canonical_url == canonical


@pytest.mark.parametrize(
    ("content", "target"),
    [
        ("0;url=/next", "https://site.example/next"),
        ("  3 ; URL = '/next' ignored", "https://site.example/next"),
        ("0;/next", "https://site.example/next"),
        ("0 url=/next", "https://site.example/next"),
        ("0.5,url=/next", "https://site.example/next"),
        (".5;url=/next", "https://site.example/next"),
        ("5", None),
        ("5;", None),
        ("5;url=", None),
        ("x;url=/next", None),
        ("0x;url=/next", None),
        ("٥;url=/next", None),
        ("0;url=javascript:x", None),
    ],
)
def test_meta_refresh(content: str, target: str | None) -> None:
    html = f'<meta http-equiv=Refresh content="{content}">'
    assert read_html(html, PAGE).refresh_url == target
    assert read_html(f"<head><noscript>{html}</noscript></head>", PAGE).refresh_url is None
    assert read_html(f"<body><noscript>{html}</noscript></body>", PAGE).refresh_url is None


@pytest.mark.parametrize(
    ("meta", "header", "noindex", "nofollow"),
    [
        ("", (), False, False),
        ("<meta name=robots content='NoIndex'>", (), True, False),
        ("<meta name=ROBOTS content='index, nofollow'>", (), False, True),
        ("<meta name=robots content=none>", (), True, True),
        ("<meta name=roundcrawl content=noindex>", (), True, False),
        ("<meta name=otherbot content=none>", (), False, False),
        ("<meta name=robots content=nofollow><meta name=Roundcrawl content=noindex>", (), True, True),
        ("<body><meta name=robots content=noindex>", (), True, False),
        ("", ("noindex",), True, False),
        ("", ("otherbot: noindex, nofollow",), False, False),
        ("", ("otherbot: noindex", "nofollow"), False, True),
        ("", ("Roundcrawl: noindex, nofollow",), True, True),
        ("", ("otherbot: none, roundcrawl: nofollow",), False, True),
        ("", ("unavailable_after: 25 Jun 2010 15:00:00 PST, noindex",), True, False),
        ("", ("max-snippet: 20, none",), True, True),
    ],
)
def test_robots_directives(meta: str, header: tuple[str, ...], noindex: bool, nofollow: bool) -> None:
    page = read_html(meta + "<p>", PAGE, robots_header=header, agent_token="roundcrawl")
    assert (page.noindex, page.nofollow) == (noindex, nofollow)


@pytest.mark.parametrize(
    ("html", "kept"),
    [
        ("<head><noscript>a</noscript><p>", "<head><p>"),
        ("<noscript>a</noscript ><NOSCRIPT\n>b</NoScript><title>t</title>", "<title>t</title>"),
        ("<head><script>'<p>'</script><noscript>a</noscript>", "<head><script>'<p>'</script>"),
        ("<!-- <p> --><noscript>a</noscript>", "<!-- <p> -->"),
        ("<meta content='<p>'><noscript>a</noscript>", "<meta content='<p>'>"),
        ("<!doctype html><html a=b><head><link rel=x><noscript>a</noscript>", None),
        ("<head><body><noscript>a</noscript>", "same"),
        ("<p><noscript>a</noscript>", "same"),
        ("<head><noscript>a", "same"),
        ("<head><!-- <noscript>a</noscript>", "same"),
        ("text <noscript>a</noscript>", "same"),
    ],
)
def test_noscript_of_the_head_is_removed(html: str, kept: str | None) -> None:
    expected = {"same": html, None: html.replace("<noscript>a</noscript>", "")}.get(kept, kept)
    assert without_head_noscript(html) == expected


@pytest.mark.parametrize(
    "unit", ["<noscript>", "<noscript", "<script>", "<!--", '<meta a="', "<meta ", "<title>"]
)
def test_an_endless_head_takes_linear_time(unit: str) -> None:
    html = "<noscript></noscript>" + unit * (2 * MAX_HEAD_CHARS // len(unit))
    assert without_head_noscript(html).endswith(unit)


def test_nested_anchors_cost_no_more_text_than_there_is() -> None:
    html = "".join(f"<a href=/{number}><object>x" for number in range(500))
    page = read_html(html, PAGE)
    assert len(page.links) == 500
    assert page.links[0].anchor == "x" * 500


PIECES = """
<a|href=x|>|<a href='//['>|</a>|<base href=//b>|<title>|</title>|<noscript>|</noscript>|<svg>|<table>
<meta name=robots content=none>|<meta http-equiv=refresh content='0;url=r'>|<link rel=next href=n>|<math>
<html lang=x>|<frameset>|<frame src=f>|<iframe src=/i>|<script>|</script>|<!--|-->|<p|"|'|&#xD800;|&#0;|é
<link rel=canonical href=c>|<select>|<template>
"""


@given(
    st.lists(st.sampled_from([*PIECES.replace("\n", "|").split("|"), "\0", "\ud800"]), max_size=40),
    st.sampled_from(["utf-8", "windows-1252", "iso-2022-jp", "iso-8859-8-i", "replacement", "utf-16le"]),
)
def test_any_markup_is_read(parts: list[str], encoding: str) -> None:
    page = read_html(" ".join(parts), PAGE, encoding, ("none", "a:b:c"), "roundcrawl", 5)
    assert len(page.links) <= 5
    repr(page).encode("utf-8")


def test_a_collector_keeps_order_and_counts_everything() -> None:
    collector = LinkCollector(PAGE, "utf-8", max_links=2)
    for href in ("b", "mailto:x", "a", "b", "c", "a"):
        collector.add(href, href.upper(), "")
    assert collector.links() == (
        Link("https://site.example/dir/b", "B", ""),
        Link("https://site.example/dir/a", "A", ""),
    )
    assert collector.rejected() == (("too_many_links", 1), ("unsupported_scheme", 1))
