"""Sort-friendly keys of URLs (SURT), as web archives' indexes order their rows."""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

_MOST_LEVELS = 64
_WWW = re.compile(r"www\d*\.(?=.)")
_SLASHES = re.compile(r"/{2,}")
_ESCAPED = {code: f"%{code:02x}" for code in [*range(0x21), 0x23, 0x25, *range(0x7F, 0x100)]}


def surt_key(url: str) -> str:
    """Return the index key of a URL: ``com,example)/path?query`` for ``http://www.example.com/Path/?Query``.

    Labels reversed, ``www`` and its numbered forms dropped, a port that is not the default kept
    (``com,example:8080)/``), escapes undone (64 levels at most) and unsafe bytes escaped once, all in lower
    case, repeated and last slashes of the path dropped, parameters sorted. Many URLs share a key: it orders
    an index and names no page. Text that is no http or https URL is its own key.
    """
    scheme, mark, rest = url.partition("://")
    if not mark or scheme not in ("http", "https"):
        return url
    authority, slash, tail = rest.partition("#")[0].partition("/")
    path, _, query = (slash + tail).partition("?")
    path = _plain(path)
    if "/." in path:
        path = _without_dots(path)
    path = _SLASHES.sub("/", path).rstrip("/") or "/"
    query = _plain(query)
    if "&" in query:
        query = "&".join(sorted(query.split("&"), key=lambda param: param.partition("=")))
    return f"{_reversed_authority(scheme, authority)}){path}" + (f"?{query}" if query else "")


def _plain(text: str) -> str:
    """Return the text in lower case with its escapes undone, then the unsafe bytes escaped once."""
    if "%" in text:
        data = text.encode()
        for _ in range(_MOST_LEVELS):
            if (decoded := unquote_to_bytes(data)) == data:
                break
            data = decoded
        text = data.decode("latin-1").translate(_ESCAPED)
    return text.lower()


def _without_dots(path: str) -> str:
    """Return the path with dot segments resolved that only undoing escapes has brought to light."""
    kept: list[str] = []
    for segment in path.split("/"):
        if segment == ".." and len(kept) > 1:
            kept.pop()
        elif segment != ".":
            kept.append(segment)
    return "/".join(kept)


def _reversed_authority(scheme: str, authority: str) -> str:
    host, colon, port = authority.rpartition(":")
    if not colon or authority.endswith("]"):
        host, port = authority, ""
    host = _WWW.sub("", host, count=1) if host.startswith("www") else host
    reversed_host = host[1:-1] if host.startswith("[") else ",".join(host.split(".")[::-1])
    return f"{reversed_host}:{port}" if port else reversed_host
