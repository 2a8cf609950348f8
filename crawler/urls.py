"""URLs in normal form, their parts, and the keys that the crawl knows them by."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import ada_url

from crawler.hosts import HostColumns, host_columns, is_dns_name, registered_domain
from crawler.query import encode_query, tidy_path, tidy_query
from crawler.surt import surt_key

__all__ = [
    "HostColumns",
    "NormalUrl",
    "UrlKeys",
    "UrlParts",
    "UrlRejection",
    "authority_of",
    "host_columns",
    "host_of",
    "normalise",
    "partition_of",
    "path_of",
    "port_of",
    "registered_domain",
    "split",
    "surt_key",
]

MAX_RAW_CHARS = 65_536
_LONGEST_AUTHORITY = 255 + len(":65535")
DEFAULT_PORT_OF = {"http": 80, "https": 443}
_UNTIDY = re.compile(r"[%;(\[\]|^`{}\\]")
_SURROGATE = re.compile("[\ud800-\udfff]")


class NormalUrl(NamedTuple):
    """A URL in the crawl's normal form: pure ASCII, absolute, http or https, fit to be sent as it is."""

    url: str


class UrlRejection(NamedTuple):
    """Text that is no URL to crawl.

    ``reason`` is invalid_url, invalid_host, unsupported_scheme or url_too_long; ``detail`` is free text.
    """

    reason: str
    detail: str


def normalise(raw: str, base: str | None = None, encoding: str = "utf-8") -> NormalUrl | UrlRejection:
    """Return the normal form of a link: what is fetched, stored and compared.

    The WHATWG URL parser reads ``raw`` against ``base``; then fragment, userinfo, default port, trailing dots
    of the host, an empty query, session ids and tracking parameters go, escapes are unified (RFC 3986 section
    6.2.2) and query parameters are sorted by name. ``encoding`` is the page's, for non-ASCII text in a query.
    Idempotent: the normal form of a normal URL is itself. Never raises for any text.
    """
    if len(raw) > MAX_RAW_CHARS:
        return UrlRejection("url_too_long", f"{len(raw)} characters")
    href = _parse(raw if encoding == "utf-8" else encode_query(raw, encoding), base)
    if href is None:
        return UrlRejection("invalid_url", raw[:200])
    scheme, _, rest = href.partition("://")
    if scheme not in DEFAULT_PORT_OF:
        return UrlRejection("unsupported_scheme", href.partition(":")[0][:40])
    rest = rest.partition("#")[0]
    authority, slash, path = rest.partition("/")
    authority = authority.rpartition("@")[2]
    clean = _clean_authority(scheme, authority) if len(authority) <= _LONGEST_AUTHORITY else None
    if clean is None:
        return UrlRejection("invalid_host", authority[:_LONGEST_AUTHORITY])
    path, _, query = path.partition("?")
    return _assemble(f"{scheme}://{clean}", slash + path, query)


def _assemble(front: str, path: str, query: str) -> NormalUrl:
    if _UNTIDY.search(path):
        path = tidy_path(path)
        if "/." in path:
            # Without its session id a segment may have become "..", which the parser has to see.
            path = "/" + ada_url.normalize_url("http://h" + path).partition("//h/")[2]
    if query:
        query = tidy_query(query)
    return NormalUrl(f"{front}{path}?{query}" if query else front + path)


def _parse(raw: str, base: str | None) -> str | None:
    try:
        href: str = ada_url.normalize_url(raw) if base is None else ada_url.join_url(base, raw)
    except ValueError:
        # The parser takes UTF-8; web platform strings replace lone surrogates (Infra section 4.7).
        scalar = _SURROGATE.sub("\ufffd", raw)
        scalar_base = base and _SURROGATE.sub("\ufffd", base)
        return None if (scalar, scalar_base) == (raw, base) else _parse(scalar, scalar_base)
    return href


@lru_cache(maxsize=65536)
def _clean_authority(scheme: str, authority: str) -> str | None:
    if authority.startswith("["):
        return authority
    host, colon, port = authority.partition(":")
    if host.endswith("."):
        # Only now may it read as an IPv4 address ("0x7f.1.."): let the parser see it again.
        href = _parse(f"{scheme}://{host.rstrip('.')}/", None)
        host = href[len(scheme) + 3 : -1] if href else ""
    return host + colon + port if is_dns_name(host) else None


class UrlParts(NamedTuple):
    """A normal URL taken apart. An IPv6 ``host`` has no brackets; ``query`` is None where there is none."""

    scheme: str
    host: str
    port: int
    path: str
    query: str | None

    @property
    def target(self) -> str:
        """Path and query as one: what a request line, robots.txt and exclude_paths talk of."""
        return self.path if self.query is None else f"{self.path}?{self.query}"


def split(url: str) -> UrlParts:
    """Return the parts of a URL in normal form; text that is no such URL is a bug and raises ValueError."""
    scheme, mark, rest = url.partition("://")
    authority, slash, tail = rest.partition("/")
    if scheme not in DEFAULT_PORT_OF or not mark or not slash or not authority:
        raise ValueError(f"not a URL in normal form: {url[:200]!r}")
    host, port = _host_and_port(scheme, authority)
    path, question, query = tail.partition("?")
    return UrlParts(scheme, host, port, "/" + path, query if question else None)


@lru_cache(maxsize=65536)
def _host_and_port(scheme: str, authority: str) -> tuple[str, int]:
    host, colon, port = authority.rpartition(":")
    if not colon or authority.endswith("]"):
        host, port = authority, ""
    return host.strip("[]"), int(port) if port else DEFAULT_PORT_OF[scheme]


def host_of(url: str) -> str:
    """Return the host of a normal URL: lower-case name, or address (IPv6 without brackets)."""
    return split(url).host


def port_of(url: str) -> int:
    """Return the port that a normal URL is asked at, the scheme's default where it names none."""
    return split(url).port


def path_of(url: str) -> str:
    """Return the path of a normal URL, always with its leading slash, without the query."""
    return split(url).path


def authority_of(url: str) -> str:
    """Return ``scheme://host:port`` of a normal URL, the port always written: what one robots.txt covers.

    RFC 9309 section 2.3: rules hold for one scheme, host and port. IPv6 addresses stand in brackets.
    """
    parts = split(url)
    host = f"[{parts.host}]" if ":" in parts.host else parts.host
    return f"{parts.scheme}://{host}:{parts.port}"


class UrlKeys:
    """The 64-bit keys of one crawl, by keyed BLAKE2b with its salt: no server can choose URLs that collide.

    The top 16 bits of a host key come from the registered domain alone, so that a partition by top bits keeps
    a domain's hosts together; the low 48 bits come from the host. Equal salts give equal keys anywhere.
    """

    def __init__(self, salt: str) -> None:
        self.salt = salt
        self._key = hashlib.blake2b(salt.encode(), digest_size=32).digest()
        self.host_key: Callable[[str], int] = lru_cache(maxsize=65536)(self._host_key)

    def __reduce__(self) -> tuple[type[UrlKeys], tuple[str]]:
        return UrlKeys, (self.salt,)

    def _digest(self, text: str, person: bytes) -> int:
        digest = hashlib.blake2b(text.encode(), digest_size=8, key=self._key, person=person).digest()
        return int.from_bytes(digest, "big")

    def _host_key(self, host: str) -> int:
        domain_bits = self._digest(registered_domain(host), b"domain") >> 48 << 48
        return domain_bits | self._digest(host, b"host") >> 16

    def url_key(self, url: str) -> int:
        """Return the unsigned 64-bit key of a normal URL."""
        return self._digest(url, b"url")


def partition_of(host_key: int, partitions: int) -> int:
    """Return the partition, 0 to ``partitions`` - 1, by the top bits of the host key.

    ``partitions`` must be a power of two up to 65,536, the range in which a registered domain stays whole;
    anything else raises ValueError.
    """
    bits = partitions.bit_length() - 1
    if not 1 <= partitions <= 65_536 or partitions != 1 << bits:
        raise ValueError(f"partitions must be a power of two from 1 to 65536, got {partitions}")
    return host_key >> (64 - bits)
