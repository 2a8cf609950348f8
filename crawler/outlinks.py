"""How many links a document holds, without parsing it: a figure for its WARC metadata record."""

from __future__ import annotations

import re

_LINK = re.compile(rb"<a(?:rea)?[\t\n\x0c\r /][^<>]*?href[\t\n\x0c\r ]*=", re.IGNORECASE)
# What is never closed goes on to the end, so that each byte is looked at once.
_UNSEEN = re.compile(
    rb"<!--(?:-?>|.*?(?:-->|\Z))|<(script|style|template)\b.*?(?:</\1|\Z)", re.IGNORECASE | re.DOTALL
)


def count_outlinks(body: bytes, charset: str) -> int:
    """Return the number of ``a`` and ``area`` start tags with an href, those in comments and scripts left out.

    ``body`` has its content coding undone, ``charset`` is its WHATWG name. What a browser would make of broken
    markup may differ by a few; time is linear in the body. Never raises.
    """
    if charset.startswith(("utf-16", "utf-32")):
        body = body.replace(b"\0", b"")
    return sum(1 for _ in _LINK.finditer(_UNSEEN.sub(b"", body)))
