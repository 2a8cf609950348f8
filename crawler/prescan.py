"""The encoding that an HTML or XML document declares in its first bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator

STANDARD_BYTES = 1024
"""How far the HTML standard looks before it parses."""

SCAN_BYTES = 16_384
"""How far we look: a browser also obeys a declaration that it meets later, while it parses."""

_SPACE = rb"\t\n\x0c\r "
_ATTRIBUTE = re.compile(
    rb"[%(s)s/]*([^%(s)s/>][^%(s)s/>=]*)[%(s)s]*"
    rb"(?:=[%(s)s]*(?:\"([^\"]*)\"|'([^']*)'|(?=>)|([^%(s)s>\"'][^%(s)s>]*)))?" % {b"s": _SPACE}
)
_CONSTRUCT = re.compile(
    rb"<(?:(?P<comment>!--)|(?P<meta>meta)(?=[%(s)s/])|(?P<tag>/?[a-z][^%(s)s>]*)|[!/?])" % {b"s": _SPACE},
    re.IGNORECASE,
)
_RAW_TEXT = re.compile(rb"(?:script|style|textarea|title)\b", re.IGNORECASE)
_CONTENT_CHARSET = re.compile(
    rb"charset[%(s)s]*=[%(s)s]*(?:\"([^\"]*)\"|'([^']*)'|([^%(s)s;\"'][^%(s)s;]*))" % {b"s": _SPACE},
    re.IGNORECASE,
)
_XML_ENCODING = re.compile(rb"\s*<\?xml[^>]*?[\x00-\x20]encoding[\x00-\x20]*=[\x00-\x20]*([\"'])([^\"'>]*)\1")


def declared_labels(body: bytes) -> Iterator[str]:
    """Yield the labels that the <meta> elements declare, in order, then the XML declaration's.

    WHATWG HTML section 13.2.3.2, "prescan a byte stream to determine its encoding", over SCAN_BYTES; beyond
    the standard's 1024 bytes, where the parser would find the tag, script and style are not looked into.
    Labels are as written: the first one that is known counts.
    """
    head = body[:SCAN_BYTES]
    if b"charset" in head.lower():
        yield from _meta_labels(head)
    match = _XML_ENCODING.match(head)
    if match:
        yield match[2].decode("latin-1")


def _meta_labels(head: bytes) -> Iterator[str]:
    end = 0
    while end >= 0 and (construct := _CONSTRUCT.search(head, end)):
        if construct["comment"]:
            end = _after(head, b"-->", construct.start() + 2)
        elif construct["meta"] or construct["tag"]:
            attributes, end = _attributes(head, construct.end())
            if construct["meta"] and end >= 0:
                yield from _labels_of_meta(attributes)
            elif end >= STANDARD_BYTES and _RAW_TEXT.fullmatch(construct["tag"] or b""):
                end = _after(head.lower(), b"</" + construct["tag"].lower(), end)
        else:
            end = _after(head, b">", construct.end())


def _after(head: bytes, mark: bytes, start: int) -> int:
    """Return where ``mark`` ends, -1 if the bytes end before it comes."""
    found = head.find(mark, start)
    return found + len(mark) if found >= 0 else -1


def _attributes(head: bytes, at: int) -> tuple[dict[bytes, bytes], int]:
    """Return a tag's attributes, first of each name, and where it ends: -1 if the bytes end before."""
    found: dict[bytes, bytes] = {}
    while match := _ATTRIBUTE.match(head, at):
        at = match.end()
        if at >= len(head) or head[at] == 0x3D:
            return found, -1
        value = match[2] or match[3] or match[4] or b""
        found.setdefault(match[1].lower(), value)
    return found, _after(head, b">", at)


def _labels_of_meta(attributes: dict[bytes, bytes]) -> Iterator[str]:
    if b"charset" in attributes:
        yield attributes[b"charset"].decode("latin-1")
    elif attributes.get(b"http-equiv", b"").lower() == b"content-type":
        match = _CONTENT_CHARSET.search(attributes.get(b"content", b""))
        if match:
            yield (match[1] or match[2] or match[3] or b"").decode("latin-1")
