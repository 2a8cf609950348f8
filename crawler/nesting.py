"""A document made shallow: what parsers take quadratic time for is cut before they see it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

MAX_DEPTH = 240
"""How deep elements stay nested: libxml2 reads nothing below 256, browsers flatten what is deeper than 512."""

MAX_ATTRIBUTES = 512
"""How many attributes of one tag are kept."""

MANY_TAGS = 10_000
"""A document with fewer tags, none of them with a long run of characters, costs no parser much."""

LONG_RUN_CHARS = 20_000

_TAG = re.compile(r"<(/?)([a-zA-Z][^\s/>]*+)(>?)")
_ATTRIBUTE = re.compile(r"""[\s/]*+[^\s/>][^\s/>=]*+(?:\s*+=\s*+(?:"[^"]*+"|'[^']*+'|[^\s>"'][^\s>]*+)?)?""")
_TAG_END = re.compile(r"""(?:[^>"']++|"[^"]*+"|'[^']*+')*+>""")
# Elements that hold nothing, or that end when another of their kind begins: they nest only within others.
_HOLD_NOTHING = """
area base basefont bgsound br col embed frame hr img input keygen link meta param source track wbr
a dd dt li nobr option p rb rp rt rtc tbody td tfoot th thead tr
"""
_NO_DEPTH = frozenset(_HOLD_NOTHING.split())


def shallow(html: str) -> str:
    """Return the document without the start tags that nest deeper than MAX_DEPTH, without a tag's attributes
    after the first MAX_ATTRIBUTES, and with a link ended where the next begins.

    Text and links stay, and a document within the limits comes back as it is. It bounds the time of parsers
    that compare each tag with all that are open, and each attribute with all others of its tag. Takes time
    linear in the document, next to none for an ordinary one.
    """
    if html.count("<") <= MANY_TAGS and not _has_endless_tag(html):
        return html
    kept: list[str] = []
    start = 0
    for cut_from, cut_to, instead in _cuts(html):
        kept += (html[start:cut_from], instead)
        start = cut_to
    return "".join([*kept, html[start:]]) if kept else html


def _has_endless_tag(html: str) -> bool:
    return any(_is_endless(f"<{run}") for run in html.split("<") if len(run) >= LONG_RUN_CHARS)


def _is_endless(run: str) -> bool:
    tag = _TAG.match(run)
    return tag is not None and not tag[3] and _attributes(run, tag.end())[0] >= 0


def _cuts(html: str) -> Iterator[tuple[int, int, str]]:
    """Yield (from, to, what stands there instead), in order."""
    depths: Counter[str] = Counter()
    depth, is_link_open, at = 0, False, 0
    search = _TAG.search
    while tag := search(html, at):
        slash, name, close = tag.groups()
        begin, is_end, name = tag.start(), slash == "/", name.lower()
        surplus, at = (-1, tag.end()) if close else _attributes(html, tag.end())
        if at < 0:
            return
        if name == "a":
            if is_link_open and not is_end:
                yield begin, begin, "</a>"
            is_link_open = not is_end
        elif name not in _NO_DEPTH:
            if is_end and not depths[name]:
                continue
            step = -1 if is_end else 1
            if depth - is_end >= MAX_DEPTH:
                yield begin, at, ""
                surplus = -1
            depth += step
            depths[name] += step
        if surplus >= 0:
            yield surplus, at - 1, ""


def _attributes(html: str, at: int) -> tuple[int, int]:
    """Return where a tag's surplus attributes begin, -1 without any, and where the tag ends, -1 if never."""
    surplus = -1
    for _ in range(MAX_ATTRIBUTES):
        attribute = _ATTRIBUTE.match(html, at)
        if attribute is None:
            break
        at = attribute.end()
    else:
        surplus = at if _ATTRIBUTE.match(html, at) else -1
    end = _TAG_END.match(html, at)
    return surplus, -1 if end is None else end.end()
