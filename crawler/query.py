"""Path and query in normal form: escapes unified, session ids and tracking gone, parameters sorted.

All functions take and return text as the WHATWG parser writes it: ASCII, most unsafe characters escaped. No
escape is undone that could have a meaning. The few characters that WHATWG leaves raw and RFC 3986 does not
allow (``tags[]``, ``a|b``) are escaped: both spellings are one page, and strict servers refuse the raw one.
"""

from __future__ import annotations

import codecs
import re
from functools import lru_cache

# A stray % must not meet a decoded digit: %%34%31 would turn into %41, another text.
_ESCAPE = re.compile(r"%(?:([0-9A-Fa-f]{2})|[0-9A-Fa-f]?(?:%3[0-9]|%4[1-6]|%6[1-6]){1,2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_HEX = "0123456789abcdefABCDEF"
_BY_DIGITS = {
    a + b: chr(int(a + b, 16)) if chr(int(a + b, 16)) in _UNRESERVED else f"%{a}{b}".upper()
    for a in _HEX
    for b in _HEX
}

_UNTIDY = re.compile(r"[%;\[\]|^`{}\\]")
_NOT_ALLOWED = re.compile(r"[\[\]|^`{}\\]")
_AMP_ENTITY = re.compile(r"(^|&)(?:amp;)+", re.IGNORECASE)
_TRACKING_NAME = re.compile(r"utm_.*|[gd]clid|fbclid|msclkid|yclid|mc_[ce]id|_ga|igshid", re.DOTALL)
_SESSION_NAME = re.compile(r"phpsessid|(?:php|j)sessionid|aspsessionid[a-z]*")
_MAYBE_SESSION_NAME = re.compile(r"(?:_|l|j|bv_|osc|zen)?(?:s|sess|session|session_)id")
_RANDOM_VALUE = re.compile(
    r"(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[0-9A-Za-z]{16,}"
    r"|[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}"
)
_PATH_SESSION = re.compile(r";(?:jsessionid|phpsessid)=[^/?;&]*", re.IGNORECASE)
_ASP_NET_SESSION = re.compile(r"/(?:\((?:[A-Za-z]\([0-9A-Za-z]{24}\))+\)|\([0-9A-Za-z]{24}\))(?=/)")
_OCTETS = {0xDC00 + byte: f"%{byte:02X}" for byte in range(0x80, 0x100)}
_NON_ASCII = re.compile(r"[^\x00-\x7f]+")


def unify_escapes(text: str) -> str:
    """Return ``text`` with %xx in upper case, and decoded where it means an unreserved character.

    RFC 3986 section 6.2.2. A % that starts no escape stays as it is; characters that sections 3.3 and 3.4 do
    not allow are escaped. Idempotent.
    """
    if "%" in text:
        text = _ESCAPE.sub(_unified, text)
    return _NOT_ALLOWED.sub(_escaped, text)


def _unified(match: re.Match[str]) -> str:
    digits = match[1]
    return match[0] if digits is None else _BY_DIGITS[digits]


def _escaped(match: re.Match[str]) -> str:
    return f"%{ord(match[0]):02X}"


def tidy_path(path: str) -> str:
    """Return the path without session ids (``;jsessionid=``, ASP.NET's ``/(S(...))/``), escapes unified."""
    path = unify_escapes(path)
    if ";" in path:
        path = _PATH_SESSION.sub("", path)
    if "/(" in path:
        path = _ASP_NET_SESSION.sub("", path)
    return path


def tidy_query(query: str) -> str:
    """Return the query without empty, tracking and session parameters, the rest sorted by name.

    Values are not touched; parameters of one name keep their order. ``&amp;`` (a link escaped once too often)
    counts as ``&``. Names are compared as text after escapes are unified. Idempotent.
    """
    if _UNTIDY.search(query):
        query = unify_escapes(query)
        query = _PATH_SESSION.sub("", _AMP_ENTITY.sub(r"\1", query))
    params = [param for param in query.split("&") if param]
    names = [param.partition("=")[0] for param in params]
    fates = [_fate(name[:_LONGEST_NAME]) for name in names]
    if any(fates):
        params = _kept(params, names, fates)
        names = [param.partition("=")[0] for param in params]
    if len(params) > 1 and names != sorted(names):
        params.sort(key=lambda param: param.partition("=")[0])
    return "&".join(params)


_LONGEST_NAME = 64
_KEEP, _DROP, _DROP_IF_RANDOM, _DROP_IF_PAIRED = range(4)


@lru_cache(maxsize=8192)
def _fate(name: str) -> int:
    name = name.lower()
    if _TRACKING_NAME.fullmatch(name) or _SESSION_NAME.fullmatch(name):
        return _DROP
    if name in ("cfid", "cftoken"):
        return _DROP_IF_PAIRED
    return _DROP_IF_RANDOM if _MAYBE_SESSION_NAME.fullmatch(name) else _KEEP


def _kept(params: list[str], names: list[str], fates: list[int]) -> list[str]:
    paired = {name.lower() for name, fate in zip(names, fates, strict=True) if fate == _DROP_IF_PAIRED}
    return [
        param
        for param, fate in zip(params, fates, strict=True)
        if fate == _KEEP
        or (fate == _DROP_IF_RANDOM and not _RANDOM_VALUE.fullmatch(param.partition("=")[2]))
        or (fate == _DROP_IF_PAIRED and len(paired) < 2)
    ]


def encode_query(raw: str, encoding: str) -> str:
    """Return the link text, its query's non-ASCII characters escaped as a page in ``encoding`` means them.

    WHATWG URL section 4.3 (query state with an encoding): characters that the encoding lacks become escaped
    numeric references. Unknown encodings, UTF-8 and UTF-16 leave the text alone, for they mean UTF-8.
    """
    if raw.isascii():
        return raw
    head, mark, fragment = raw.partition("#")
    path, question, query = head.partition("?")

    def escaped(match: re.Match[str]) -> str:
        return "".join(f"%{byte:02X}" for byte in match[0].encode(encoding, "xmlcharrefreplace"))

    try:
        if codecs.lookup(encoding).name.startswith(("utf-8", "utf-16", "utf-32")):
            return raw
        return path + question + _NON_ASCII.sub(escaped, query) + mark + fragment
    except (LookupError, ValueError):
        return raw


def escape_octets(raw: bytes) -> str:
    """Return the bytes of a URL, as a Location header brings them, as text with the non-ASCII ones escaped.

    Right for UTF-8 and for any other encoding alike, since the server is sent back what it sent.
    """
    return raw.decode("ascii", "surrogateescape").translate(_OCTETS)
