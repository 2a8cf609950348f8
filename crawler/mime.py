"""Media types as HTTP sends them, read the way browsers read them."""

from __future__ import annotations

import re
from typing import NamedTuple

_SPACE = "\t\n\r "
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_NAME_END = re.compile("[;=]")
_QUOTED_TOKEN = re.compile("[\t\x20-\x7e\x80-\xff]*")


class MediaType(NamedTuple):
    """A parsed Content-Type: lower-case type/subtype, and parameters in order, their names lower-case."""

    essence: str
    parameters: tuple[tuple[str, str], ...] = ()

    @property
    def charset(self) -> str | None:
        """The charset parameter as it was sent, a label still to be looked up."""
        return dict(self.parameters).get("charset")


def parse_media_type(text: str) -> MediaType | None:
    """Return one media type, or None where the text is none (WHATWG MIME Sniffing section 4.4)."""
    kind, _, rest = text.strip(_SPACE).partition("/")
    subtype, semicolon, tail = rest.partition(";")
    subtype = subtype.rstrip(_SPACE)
    if not _TOKEN.fullmatch(kind) or not _TOKEN.fullmatch(subtype):
        return None
    parameters = tuple(_parameters(tail).items()) if semicolon else ()
    return MediaType(f"{kind}/{subtype}".lower(), parameters)


def parse_content_type(header: str | None) -> MediaType | None:
    """Return the media type of a response from its Content-Type, several fields joined by commas.

    The last type that can be read wins; it inherits an earlier charset if it repeats the type without one
    (Fetch section 2.2.2, "extract a MIME type"). None: no header, or nothing readable in it.
    """
    found: MediaType | None = None
    charset: str | None = None
    for value in _split_list(header or ""):
        read = parse_media_type(value)
        if read is None or read.essence == "*/*":
            continue
        if found is None or read.essence != found.essence or read.charset is not None:
            charset = read.charset
        elif charset is not None:
            read = read._replace(parameters=(*read.parameters, ("charset", charset)))
        found = read
    return found


def _split_list(header: str) -> list[str]:
    """Return the comma-separated values; a comma within quotes separates nothing."""
    values, start, at = [], 0, 0
    while at < len(header):
        if header[at] == '"':
            at = _quoted(header, at)[1]
            continue
        if header[at] == ",":
            values.append(header[start:at])
            start = at + 1
        at += 1
    return [*values, header[start:]]


def _parameters(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    at = 0
    while at < len(text):
        stop = _NAME_END.search(text, at)
        end = stop.start() if stop else len(text)
        name = text[at:end].lstrip(_SPACE).lower()
        if end == len(text) or text[end] == ";":
            at = end + 1
            continue
        at = end + 1
        if text[at : at + 1] == '"':
            value, after = _quoted(text, at)
            at = _end_of_value(text, after) + 1
        else:
            end = _end_of_value(text, at)
            value = text[at:end].rstrip(_SPACE)
            at = end + 1
            if not value:
                continue
        if _TOKEN.fullmatch(name) and _QUOTED_TOKEN.fullmatch(value):
            found.setdefault(name, value)
    return found


def _end_of_value(text: str, start: int) -> int:
    end = text.find(";", start)
    return end if end >= 0 else len(text)


def _quoted(text: str, at: int) -> tuple[str, int]:
    """Return the value of the quoted string that begins at ``at``, and where it ends."""
    value: list[str] = []
    at += 1
    while at < len(text) and text[at] != '"':
        if text[at] == "\\":
            at += 1
            value.append(text[at] if at < len(text) else "\\")
        else:
            value.append(text[at])
        at += 1
    return "".join(value), at + 1
