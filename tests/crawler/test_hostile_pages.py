"""Pages made to break a parser: each ends in time as a page or as a recorded failure, and hurts no other page."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from connectors.page_pool import TIMEOUT_SECONDS, PagePool
from crawler.directives import read_directives
from crawler.html import read_html
from crawler.mime import parse_content_type
from crawler.parse import ParseInput, parse_page
from schemas.page import ParsedPage, ParseFailure

HEALTHY = b"<!doctype html><html><body><article><p>A page like any other.</p></article><a href=/x>x</a></body></html>"


def entities(depth: int) -> str:
    """Return a document type in which each entity is ten times the one before."""
    rows = [f'<!ENTITY e{level} "{f"&e{level - 1};" * 10}">' for level in range(1, depth)]
    return f'<!DOCTYPE html [<!ENTITY e0 "lol">{"".join(rows)}]>'


PAGES: dict[str, Callable[[], bytes]] = {
    "a thousand nested divs": lambda: b"<html><body>" + b"<div>" * 1000 + b"deep",
    "unclosed tables": lambda: b"<html><body>" + b"<table><tr><td>" * 20_000 + b"deep",
    "unclosed formatting": lambda: b"<html><body>" + b"<b><i><font>" * 20_000 + b"<p>deep",
    "nested templates": lambda: b"<html><body>" + b"<template>" * 50_000 + b"<a href=/x>",
    "foreign content": lambda: b"<html><body>" + b"<svg><foreignObject><math><mi>" * 10_000,
    "many elements with many attributes": lambda: (
        b"<html><body>" + (b"<p " + b" ".join(b"a%d=1" % number for number in range(100)) + b">w") * 700
    ),
    "one huge attribute": lambda: b"<html><body><p title='" + b"x" * 5_000_000 + b"'>w</p>",
    "huge inline data": lambda: (
        b"<html><body><img src='data:image/png;base64," + b"A" * 2_500_000 + b"'><a href='data:"
        b"text/html;base64," + b"B" * 2_500_000 + b"'>x</a><p>text</p>"
    ),
    "huge inline script": lambda: b"<html><head><script>" + b"a<b&&'<!--" * 300_000 + b"</script><p>text</p>",
    "NUL bytes": lambda: (
        b"\0" * 500_000 + b"<html\0><body\0><p>te\0xt</p><a hr\0ef=/x href='/a\0b'>x\0y</a>" + b"\0" * 500_000
    ),
    "invalid UTF-8": lambda: (
        b"<html><meta charset=utf-8><body><p>" + bytes(range(128, 256)) * 10_000 + b"</p>"
    ),
    "an overlong and surrogate UTF-8": lambda: (
        b"<meta charset=utf-8><p>\xc0\xbc\xed\xa0\x80\xed\xb0\x80\xf4\x90\x80\x80"
    ),
    "a broken Shift_JIS": lambda: (
        b"<html><meta charset=shift_jis><body><p>\x81\xff\x82<a href=/x>\xfc</a>" * 1000
    ),
    "escape sequences without end": lambda: b"<html><meta charset=iso-2022-jp><body>" + b"\x1b$B" * 300_000,
    "UTF-16 of odd length": lambda: (
        b"\xff\xfe" + ("<p>x\ud800" * 1000).encode("utf-16-le", "surrogatepass") + b"<"
    ),
    "an encoding that hides everything": lambda: b"<meta charset=hz-gb-2312><p>~{text",
    "an XML bomb": lambda: (
        f"<?xml version='1.0'?>{entities(30)}<html><body><p>&e29;</p></body></html>".encode()
    ),
    "an external entity": lambda: (
        b"<?xml version='1.0'?><!DOCTYPE html [<!ENTITY x SYSTEM 'file:///etc/passwd'>]>"
        b"<html xmlns='http://www.w3.org/1999/xhtml'><body><p>one &x; two</p></body></html>"
    ),
    "character references": lambda: b"<html><body><p>" + b"&#x110000;&#xD800;&#0;&#x80;&bogus;&amp" * 20_000,
    "only opening brackets": lambda: b"<" * 3_000_000,
    "only ampersands": lambda: b"<html><body>" + b"&" * 1_000_000,
    "an unclosed comment": lambda: b"<html><body><p>text</p><!--" + b"-" * 3_000_000,
    "an unclosed attribute": lambda: b'<html><body><a href="' + b"<p>" * 1_000_000,
    "an unclosed title": lambda: b"<title>" + b"t" * 3_000_000,
    "ten thousand links": lambda: b"".join(
        b"<a href=/%d>%d</a>" % (number, number) for number in range(10_000)
    ),
    "ten thousand bad links": lambda: b"<a href='http://['>x</a>" * 10_000,
    "links within links": lambda: b"".join(b"<a href=/%d><b><p>x" % number for number in range(20_000)),
    "line breaks": lambda: b"<html><body>" + b"a<br>" * 10_000,
    "list items": lambda: b"<html><body><ul>" + b"<li>ab" * 10_000,
    "table cells": lambda: b"<html><body><table>" + b"<tr><td>a<td>b" * 4_000,
    "white space": lambda: b"<html><body><p>" + b" \n" * 1_000_000 + b"x</p>",
    "one long word": lambda: b"<html><body><p>" + b"x" * 3_000_000 + b"</p>",
    "digits in a refresh": lambda: b"<meta http-equiv=refresh content='" + b"1" * 2_000_000 + b"'>",
    "spaces in a refresh": lambda: b"<meta http-equiv=refresh content='1" + b" " * 2_000_000 + b"'>",
    "quotes in the head": lambda: b"<head><noscript>" + b"<meta a=\"'" * 300_000,
    "a charset without end": lambda: b"<meta charset=" + b" " * 3_000_000,
    "an XML declaration without end": lambda: b"<?xml" + b" encoding = " * 100_000,
    "a PDF that says it is HTML": lambda: b"%PDF-1.7\n" + bytes(range(256)) * 1000,
    "zeros": lambda: bytes(5_000_000),
}
# A parser compares each new tag with all that are open, each new attribute with all others of its tag.
QUADRATIC: dict[str, Callable[[], bytes]] = {
    "a hundred thousand nested divs": lambda: b"<html><body>" + b"<div>" * 100_000 + b"deep<a href=/x>x</a>",
    "a million attributes": lambda: (
        b"<p " + b" ".join(b"a%d=1" % number for number in range(1_000_000)) + b">w</p><a href=/x>x</a>"
    ),
    "links within objects": lambda: b"".join(b"<a href=/%d><object>x" % number for number in range(50_000)),
    "a hundred thousand nested links": lambda: b"<a href=/x>" * 100_000 + b"x",
}


def parse_among_healthy_pages(
    pages: dict[str, Callable[[], bytes]], timeout_seconds: float
) -> dict[str, ParsedPage | ParseFailure]:
    """Return what became of each page, a healthy one before and after each of them."""

    def inputs() -> Iterator[ParseInput]:
        for name, body in pages.items():
            yield ParseInput(f"https://bad.example/{name}", body(), "text/html")
            yield ParseInput("https://good.example/", HEALTHY, "text/html")

    with PagePool(parse_page, 2, timeout_seconds, preload=["crawler.parse"]) as pool:
        results = list(pool.map(inputs()))
    for healthy in results[1::2]:
        assert isinstance(healthy, ParsedPage), healthy
        assert healthy.text.startswith("A page like any other.")
    return dict(zip(pages, results[::2], strict=True))


def test_hostile_pages_are_pages_like_others() -> None:
    outcomes = parse_among_healthy_pages(PAGES, TIMEOUT_SECONDS)
    assert [(name, page) for name, page in outcomes.items() if isinstance(page, ParseFailure)] == []
    pages = {name: page for name, page in outcomes.items() if isinstance(page, ParsedPage)}
    for page in pages.values():
        repr(page).encode("utf-8")
        assert "\0" not in page.text + (page.title or "") + "".join(link.anchor for link in page.links)
        assert len(page.text) <= 3_000_000
    assert "root:" not in pages["an external entity"].text
    assert "lollol" not in pages["an XML bomb"].text
    assert [(link.target_url, link.anchor) for link in pages["NUL bytes"].links] == [
        ("https://bad.example/a%EF%BF%BDb", "xy")
    ]
    assert len(pages["ten thousand links"].links) == 5000
    assert dict(pages["ten thousand links"].rejected_links) == {"too_many_links": 5_000}
    assert dict(pages["ten thousand bad links"].rejected_links) == {"invalid_url": 10_000}
    assert pages["zeros"].empty_reason == "empty_body"


def test_pages_of_quadratic_markup_keep_their_links() -> None:
    outcomes = parse_among_healthy_pages(QUADRATIC, TIMEOUT_SECONDS)
    for name, page in outcomes.items():
        assert isinstance(page, ParsedPage), (name, page)
        assert "https://bad.example/x" in {link.target_url for link in page.links} or len(page.links) == 5000


def test_pages_over_their_time_are_killed_and_recorded() -> None:
    slow = {"a large page": lambda: b"<p>a<a href=/x>b</a><br>" * 20_000}
    assert parse_among_healthy_pages(slow, 0.3)["a large page"].reason == "parse_timeout"


def test_a_page_that_needs_too_much_memory_is_recorded() -> None:
    body = b"<html><body>" + b"<p>a" * 600_000
    with PagePool(parse_page, 1, memory_bytes=64 * 1024 * 1024, preload=["crawler.parse"]) as pool:
        inputs = [ParseInput("https://bad.example/", body), ParseInput("https://good.example/", HEALTHY)]
        failure, healthy = pool.map(inputs)
    assert isinstance(failure, ParseFailure)
    assert failure.reason in ("parse_memory", "parse_crash")
    assert isinstance(healthy, ParsedPage)


def test_what_is_read_from_headers_and_attributes_takes_linear_time() -> None:
    for unit in (";", '"', ",", "=", 'a="', "\\"):
        parse_content_type("text/html;" + unit * 300_000)
    read_directives([("robots", "," * 5_000_000)], [":" * 1_000_000], "roundcrawl")
    read_html(
        f"<link rel='{'canonical ' * 100_000}' href=/x><html lang='{'a-' * 500_000}'>", "https://a.example/"
    )
