"""What the normal form changed of a URL as somebody wrote it, in words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from urllib.parse import unquote

from crawler.query import tidy_query

_PARTS = re.compile(r"(?s)(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?")
_SCHEME = re.compile(r"\A([^:/?#]+):/*")
_AUTHORITY = re.compile(r"(?s)(?:(.*)@)?(.*?)(?::(\d*))?")
_AROUND = "".join(map(chr, range(0x21)))
_LINE_WHITE = str.maketrans("", "", "\t\n\r")
_DOT_SEGMENT = re.compile(r"(?:^|/)(?:\.|%2e){1,2}(?:/|$)", re.IGNORECASE)
_PATH_SESSION = re.compile(r";(?:jsessionid|phpsessid)=|/\(", re.IGNORECASE)


def changes(given: str, normal: str) -> tuple[str, ...]:
    """Return what was done to ``given`` to make it the normal URL ``normal``, a phrase for each thing.

    Empty if and only if the two are equal. For people: the phrases are no interface, and may hold text
    of ``given``, which can be anything. Components as in RFC 3986, appendix B.
    """
    if given == normal:
        return ()
    text = given.strip(_AROUND).translate(_LINE_WHITE)
    found = [] if text == given else ["white space removed"]
    tidy = _forward(text)
    if tidy != text:
        found.append("backslashes read as slashes")
    whole = _SCHEME.sub(r"\1://", tidy)
    if whole != tidy:
        found.append("slashes after the scheme put right")
    mine, theirs = _PARTS.fullmatch(whole), _PARTS.fullmatch(normal)
    if mine is not None and theirs is not None:
        if (mine[1] or "") != theirs[1]:
            found.append("scheme in lower case")
        found += _in_authority(mine[2] or "", theirs[2] or "")
        found += _in_path(mine[3], theirs[3])
        found += _in_query(mine[4], theirs[4])
        if mine[5] is not None:
            found.append("fragment removed")
    return tuple(found) or ("written as the WHATWG URL standard says",)


def _forward(text: str) -> str:
    """Return the text with the backslashes that a browser takes for slashes as slashes."""
    end = re.search(r"[?#]", text)
    front = text[: end.start()] if end else text
    return front.replace("\\", "/") + text[len(front) :]


def _in_authority(given: str, normal: str) -> Iterator[str]:
    mine, theirs = _AUTHORITY.fullmatch(given), _AUTHORITY.fullmatch(normal)
    if mine is None or theirs is None:
        return
    if mine[1] is not None:
        yield "userinfo removed"
    if mine[2] != theirs[2]:
        yield "host in lower case" if mine[2].lower() == theirs[2] else f"host written as {theirs[2]}"
    if mine[3] != theirs[3]:
        yield "default port removed" if theirs[3] is None else f"port written as {theirs[3]}"


def _in_path(given: str, normal: str) -> Iterator[str]:
    if given == normal:
        return
    if not given:
        yield "path / added"
        return
    has_session = _PATH_SESSION.search(given) is not None and given.count("/") + given.count(";") > (
        normal.count("/") + normal.count(";")
    )
    if has_session:
        yield "session id removed from the path"
    has_dots = _DOT_SEGMENT.search(given) is not None
    if has_dots:
        yield "dot segments resolved"
    if not (has_session or has_dots):
        yield "escapes of the path unified"


def _in_query(given: str | None, normal: str | None) -> Iterator[str]:
    if given == normal:
        return
    params = [param for param in (given or "").split("&") if param]
    kept = normal.split("&") if normal else []
    if not params:
        yield "empty query removed"
        return
    lost = Counter(map(_name, params)) - Counter(map(_name, kept))
    if lost:
        yield f"parameters removed: {', '.join(sorted(lost))}"
    left = [name for name in map(_name, params) if name not in lost]
    if left != [name for name in map(_name, kept) if name not in lost]:
        yield "parameters sorted by name"
    if not lost and left == list(map(_name, kept)):
        yield "escapes of the query unified" if tidy_query(given or "") != given else "query escaped"


def _name(param: str) -> str:
    return unquote(param.partition("=")[0])
