"""What a body is, judged by its first bytes alone and never by what a header says."""

from __future__ import annotations

import re
from typing import NamedTuple

SNIFF_BYTES = 1445
"""How much of a body decides (WHATWG MIME Sniffing, section 5.2: the resource header)."""

HTML = "text/html"
XHTML = "application/xhtml+xml"
TEXT = "text/plain"
BINARY = "application/octet-stream"


class _Magic(NamedTuple):
    """A body that has ``pattern`` at ``offset`` is of type ``mime``."""

    mime: str
    pattern: bytes
    offset: int = 0


_MAGIC = (
    _Magic("application/pdf", b"%PDF-"),
    _Magic("application/postscript", b"%!PS-Adobe-"),
    _Magic("image/png", b"\x89PNG\r\n\x1a\n"),
    _Magic("image/jpeg", b"\xff\xd8\xff"),
    _Magic("image/gif", b"GIF87a"),
    _Magic("image/gif", b"GIF89a"),
    _Magic("image/webp", b"WEBPVP", 8),
    _Magic("image/x-icon", b"\x00\x00\x01\x00"),
    _Magic("image/x-icon", b"\x00\x00\x02\x00"),
    _Magic("image/bmp", b"BM"),
    _Magic("audio/aiff", b"AIFF", 8),
    _Magic("audio/mpeg", b"ID3"),
    _Magic("application/ogg", b"OggS\x00"),
    _Magic("audio/midi", b"MThd\x00\x00\x00\x06"),
    _Magic("video/avi", b"AVI ", 8),
    _Magic("audio/wave", b"WAVE", 8),
    _Magic("image/avif", b"ftypavif", 4),
    _Magic("image/heic", b"ftypheic", 4),
    _Magic("video/mp4", b"ftyp", 4),
    _Magic("application/x-gzip", b"\x1f\x8b\x08"),
    _Magic("application/zip", b"PK\x03\x04"),
    _Magic("application/x-rar-compressed", b"Rar!\x1a\x07"),
    _Magic("application/x-7z-compressed", b"7z\xbc\xaf\x27\x1c"),
    _Magic("font/woff", b"wOFF"),
    _Magic("font/woff2", b"wOF2"),
    _Magic("font/otf", b"OTTO"),
    _Magic("font/ttf", b"\x00\x01\x00\x00"),
    _Magic("application/wasm", b"\x00asm"),
)
# Containers whose first bytes are shared by several types: the pattern above counts only after these.
_CONTAINERS = {"image/webp": b"RIFF", "video/avi": b"RIFF", "audio/wave": b"RIFF", "audio/aiff": b"FORM"}

# Every other pattern is followed by bytes that no text has; so a text on "BMW" or "ID3" stays one.
_PRINTABLE_MAGIC = (b"%PDF-", b"%!PS-Adobe-", b"\xff\xd8\xff")
_WEBM = b"\x1a\x45\xdf\xa3"
_BINARY_BYTES = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
_SPACE = b"\t\n\x0c\r "
# The standard's tags, and those that real pages without a doctype begin with (meta, link, base, center, ...).
_HTML_START = re.compile(
    rb"(?:<!doctype html|<(?:html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p|"
    rb"meta|link|base|center|frameset|noscript|main|section|article|header|nav|ul|ol|form|span|img|h[2-6])"
    rb")(?=[ >\t\n\x0c\r/])|<!--",
    re.IGNORECASE,
)
_XML_PROLOG = re.compile(
    rb"\s*(?:<\?.*?\?>|<!--.*?-->|<!doctype[^>\[]*(?:\[.*?\]\s*)?>)", re.IGNORECASE | re.DOTALL
)
_XML_ROOT = re.compile(rb"\s*<([A-Za-z_][\w.:-]*)")
_ROOTS = {
    b"html": XHTML,
    b"rss": "application/rss+xml",
    b"feed": "application/atom+xml",
    b"rdf:rdf": "application/rdf+xml",
    b"svg": "image/svg+xml",
}
_JSON_START = re.compile(rb'\{\s*(?:"|\}\s*$)|\[\s*[\{\["]|\[\s*\]\s*$')


def sniff(head: bytes) -> str | None:
    """Return the media type of a body from its beginning (content coding undone), or None if it is empty.

    Follows WHATWG MIME Sniffing section 7.1, "identifying a resource with an unknown MIME type", with
    scripts allowed; and goes on where the standard stops at text: XML is named by its root element
    (XHTML, RSS, Atom, RDF, SVG), UTF-16 text is looked into, JSON is told from plain text, and a body
    without binary bytes is no image for the sake of its first two letters.
    """
    head = head[:SNIFF_BYTES]
    if not head:
        return None
    text, is_text = _as_text(head)
    markup = _markup(text)
    if markup is not None:
        return markup
    if not is_text and _BINARY_BYTES.search(head):
        return _magic(head) or BINARY
    if not is_text and head.startswith(_PRINTABLE_MAGIC):
        return _magic(head) or TEXT
    return "application/json" if _JSON_START.match(text) else TEXT


def _as_text(head: bytes) -> tuple[bytes, bool]:
    """Return the text to look for markup in, and whether a byte order mark already says that it is text."""
    if head.startswith(b"\xef\xbb\xbf"):
        return head[3:].lstrip(_SPACE), True
    for mark, encoding in ((b"\xfe\xff", "utf-16-be"), (b"\xff\xfe", "utf-16-le")):
        if head.startswith(mark):
            decoded = head[2:].decode(encoding, "replace").encode("ascii", "replace")
            return decoded.lstrip(_SPACE), True
    return head.lstrip(_SPACE), False


def _markup(text: bytes) -> str | None:
    if not text.startswith(b"<"):
        return None
    if text[:5].lower() == b"<?xml":
        return _xml_type(text) or "text/xml"
    if _HTML_START.match(text):
        return HTML
    found = _xml_type(text)
    return found if found != XHTML else HTML


def _xml_type(text: bytes) -> str | None:
    at = 0
    while prolog := _XML_PROLOG.match(text, at):
        at = prolog.end()
    root = _XML_ROOT.match(text, at)
    return _ROOTS.get(root[1].lower()) if root else None


def _magic(head: bytes) -> str | None:
    for magic in _MAGIC:
        container = _CONTAINERS.get(magic.mime)
        if head.startswith(magic.pattern, magic.offset) and (container is None or head.startswith(container)):
            return magic.mime
    if head.startswith(_WEBM):
        return "video/webm" if b"webm" in head[:64] else "video/x-matroska"
    if len(head) > 2 and head[0] == 0xFF and head[1] & 0xE6 == 0xE2:
        return "audio/mpeg"
    return None
