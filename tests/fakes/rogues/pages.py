"""Pages made to break a parser, a terminal, a report or an index."""

from __future__ import annotations

from tests.fakes.rogues.model import Catalogue, html, reply, words

LARGE = 4_000_000


def add_pages(web: Catalogue) -> None:
    for name, (what, body) in {**_markup(), **_characters(), **_content()}.items():
        web.sends("pages", name, what, reply(body), "fetched", quick=name in ("page-nested", "page-escapes"))
    web.sends(
        "pages",
        "page-noindex",
        "noindex in the second of three header fields",
        reply(
            html("page-noindex"),
            b"X-Robots-Tag: otherbot: all",
            b"X-Robots-Tag: noindex",
            b"X-Robots-Tag: x:y",
        ),
        "excluded",
        "noindex",
    )
    web.sends(
        "pages",
        "page-png",
        "an image under text/html",
        reply(b"\x89PNG\r\n\x1a\n" + bytes(5000)),
        "excluded",
        "unsupported_type",
    )
    web.sends(
        "pages",
        "page-type",
        "a media type of 50 KB",
        reply(html("page-type"), media_type=b"text/html; " + b'a="\\;' * 8000),
        "fetched",
    )


def _filled(unit: bytes, end: bytes = b"") -> bytes:
    return b"<html><body>" + unit * (LARGE // len(unit)) + end


def _markup() -> dict[str, tuple[str, bytes]]:
    numbered = b" ".join(b"a%d=1" % n for n in range(400_000))
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 30))
    xml = f'<?xml version="1.0"?><!DOCTYPE html [<!ENTITY e0 "lol">{entities}]><html><body><p>&e29;</p></body></html>'
    outside = b'<!DOCTYPE html [<!ENTITY x SYSTEM "file:///etc/passwd">]><html><body><p>&x;</p></body></html>'
    return {
        "page-nested": ("800,000 nested divs", _filled(b"<div>", b"deep<a href=/x>x</a>")),
        "page-attributes": (
            "400,000 attributes of one tag",
            b"<p " + numbered + b">" + words("attributes").encode(),
        ),
        "page-tables": ("unclosed tables", _filled(b"<table><tr><td>")),
        "page-objects": ("links within objects", _filled(b"<a href=/y><object>z")),
        "page-templates": ("nested templates", _filled(b"<template>", b"<a href=/t>")),
        "page-svg": ("nested foreign content", _filled(b"<svg><foreignObject><math><mi>")),
        "page-cells": ("a million list items", _filled(b"<li>i")),
        "page-links": ("300,000 links", _filled(b"<a href=/l>l</a>")),
        "page-bad-links": ("200,000 links to nothing", _filled(b"<a href='http://['>x</a>")),
        "page-brackets": ("opening brackets only", _filled(b"<")),
        "page-comment": ("an unclosed comment", _filled(b"-") + b"<!--"),
        "page-quote": ("an unclosed attribute", b"<a href='" + _filled(b"<q>")),
        "page-entities": ("broken character references", _filled(b"&#x110000;&#xD800;&#0;&bogus;&amp")),
        "page-xml-bomb": ("an XML bomb", xml.encode()),
        "page-xml-file": ("an external entity of a local file", outside),
    }


def _characters() -> dict[str, tuple[str, bytes]]:
    title = "\x1b]0;owned\x07\x1b[2J\u202eevil\x00<script>alert(1)</script>"
    escapes = html("page-escapes", f"<h1>{title}</h1><a href='/\x1b[31m\x00\r\n'>{title}</a>")
    return {
        "page-nul": ("NULs everywhere", b"\0" * 500_000 + html("page-nul").replace(b"<", b"\0<\0")),
        "page-utf8": ("bytes that are no UTF-8", b"<meta charset=utf-8><p>" + bytes(range(128, 256)) * 8000),
        "page-utf16": (
            "UTF-16 of odd length with lone surrogates",
            b"\xff\xfe"
            + (html("page-utf16").decode() + "<p>x\ud800" * 9000).encode("utf-16-le", "surrogatepass")
            + b"<",
        ),
        "page-charset": (
            "a charset that does not exist",
            b"<meta charset=no-such-thing>" + html("page-charset"),
        ),
        "page-utf7": (
            "a charset that hides markup",
            b"<meta charset=utf-7>+ADw-script+AD4-" + html("page-utf7"),
        ),
        "page-iso2022": ("escape sequences without end", b"<meta charset=iso-2022-jp>" + b"\x1b$B" * 300_000),
        "page-escapes": (
            "a title with terminal codes and a script",
            escapes.replace(b"<title>page-escapes", b"<title>" + title.encode()),
        ),
        "page-bidi": ("text that runs both ways", html("page-bidi", "<p>\u202e\u2066\u2067\u200f" * 5000)),
    }


def _content() -> dict[str, tuple[str, bytes]]:
    base = "<base href='javascript:alert(1)'><meta http-equiv=refresh content='0;url=data:text/html,x'>"
    hosts = "".join(f"<a href=http://h{n}.wild-hosts.example/>h</a>" for n in range(3000))
    traps = "".join(f"<a href='/{'a/' * n}'>t</a><a href='?page={10**n}'>n</a>" for n in range(1, 60))
    private = "".join(
        f"<a href='{url}'>p</a>" for url in ("http://127.0.0.1/", "http://0/", "http://[::1]:22/")
    )
    data = (
        b"<img src='data:image/png;base64,"
        + b"A" * 2_000_000
        + b"'><a href='data:x,"
        + b"B" * 2_000_000
        + b"'>d</a>"
    )
    return {
        "page-data": ("4 MB of data: URLs", html("page-data") + data),
        "page-script": (
            "a script and nothing else",
            b"<html><script>" + b"while(1){}" * 50_000 + b"</script></html>",
        ),
        "page-word": ("one word of 4 MB", b"<p>" + b"w" * LARGE),
        "page-spaces": ("4 MB of white space", b"<p>" + b" \n" * (LARGE // 2) + b"x"),
        "page-zeros": ("4 MB of zero bytes", bytes(LARGE)),
        "page-empty": ("no byte at all", b""),
        "page-base": ("a base and a refresh that are scripts", html("page-base", base)),
        "page-hosts": ("links to 3,000 hosts of one wildcard domain", html("page-hosts", hosts)),
        "page-traps": ("links into paths and pages without end", html("page-traps", traps)),
        "page-private": ("links to private addresses", html("page-private", private)),
    }
