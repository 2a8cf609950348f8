"""A document as a browser reads it that runs scripts, for a parser that knows only the other way."""

from __future__ import annotations

import re

MAX_HEAD_CHARS = 262_144

_HEAD_TAG = re.compile(
    r"""\s*+(?:<!--(?P<comment>)|<[!?][^>]*+>
    |<(?P<name>/?[a-z][^\s/>]*+)(?:[^>"']++|"[^"]*+"|'[^']*+')*+>)""",
    re.IGNORECASE | re.VERBOSE,
)
_VOID = {"html", "/html", "head", "/head", "meta", "link", "base", "basefont", "bgsound", "/noscript"}
_WITH_CONTENT = {"script", "style", "title", "noscript", "template", "noframes"}
_END_TAGS = {name: re.compile(f"</{name}[\\s/>]", re.IGNORECASE) for name in _WITH_CONTENT}


def without_head_noscript(html: str) -> str:
    """Return the document with the <noscript> elements of its head removed.

    With scripting on they are plain text (HTML section 13.2.6.4.4). With scripting off an <img> or <iframe>
    in one, the usual tracking pixel, ends the head: what follows it moves into the body, and a <base> moves
    out of the <noscript>. Those in the body stay: their links are worth following. An element that is not
    closed within MAX_HEAD_CHARS stays too.
    """
    if "noscript" not in html[:MAX_HEAD_CHARS].lower():
        return html
    kept: list[str] = []
    start = at = 0
    while tag := _HEAD_TAG.match(html, at, MAX_HEAD_CHARS):
        name = (tag["name"] or "").lower()
        if tag["comment"] is not None:
            at = html.find("-->", tag.end(), MAX_HEAD_CHARS) + 3
            if at < 3:
                break
        elif name in _WITH_CONTENT:
            end = _END_TAGS[name].search(html, tag.end(), MAX_HEAD_CHARS)
            if end is None:
                break
            at = html.find(">", end.end() - 1) + 1
            if at == 0:
                break
            if name == "noscript":
                kept.append(html[start : tag.start()])
                start = at
        elif not name or name in _VOID:
            at = tag.end()
        else:
            break
    return "".join([*kept, html[start:]]) if kept else html
