"""What parsing makes of a capture: a page, its links, its sketch."""

from __future__ import annotations

from typing import NamedTuple


class Link(NamedTuple):
    """One hyperlink of a page, target in normal form."""

    target_url: str
    anchor: str
    rel: str


class ParsedPage(NamedTuple):
    """A document after parsing. ``empty_reason`` names why ``text`` is empty, when it is."""

    url: str
    title: str | None
    language: str | None
    charset: str
    charset_source: str
    canonical_url: str | None
    noindex: bool
    nofollow: bool
    text: str
    empty_reason: str | None
    content_hash: str
    links: tuple[Link, ...]
    rejected_links: tuple[tuple[str, int], ...]
    refresh_url: str | None = None


class ParseFailure(NamedTuple):
    """A document that could not be parsed: it cost one page process at the most."""

    url: str
    reason: str
    detail: str


class Sketch(NamedTuple):
    """The identity of a text for the content gate.

    ``text_digest`` is 16 bytes (BLAKE2b-128 of the normalised text); ``signature`` 64 bytes
    (128 MinHash values of 4 bits) or empty when the text has fewer than 50 words.
    ``bands`` are the 16 unsigned 64-bit bucket hashes, empty with the signature.
    """

    text_digest: bytes
    words: int
    signature: bytes
    bands: tuple[int, ...]


class DuplicateVerdict(NamedTuple):
    """This document lost to ``kept_url``. ``kind`` is exact or near."""

    host_key: int
    url_key: int
    url: str
    kept_url: str
    kind: str
    similarity: float


class ParsedRow(NamedTuple):
    """A parsed page as the parse step files it: identity, ParsedPage and links, column by column."""

    host_key: int
    url_key: int
    url: str
    title: str | None
    language: str | None
    charset: str
    charset_source: str
    canonical_url: str | None
    noindex: bool
    nofollow: bool
    text: str
    empty_reason: str | None
    content_hash: str
    link_targets: tuple[str, ...]
    link_anchors: tuple[str, ...]
    link_rels: tuple[str, ...]
    rejected_reasons: tuple[str, ...]
    rejected_counts: tuple[int, ...]
    refresh_url: str | None
    failure: str | None
    failure_detail: str | None


class SketchRow(NamedTuple):
    """A document before the content gate: identity, rank inputs, digest and sketch.

    Rank within a round: a page that others name canonical first, then the least (depth, SURT key).
    ``text_digest`` of a page without text is a digest of its bytes, so that empty pages never match.
    """

    host_key: int
    url_key: int
    url: str
    surt_key: str
    registered_domain: str
    depth: int
    canonical_url: str | None
    text_digest: bytes
    words: int
    signature: bytes
    bands: tuple[int, ...]


class CandidateRow(NamedTuple):
    """A URL that a settled page or redirect names: it may be new to the crawl.

    ``kind`` is link, redirect, refresh, or hop (a redirect target that was fetched in this round).
    """

    host_key: int
    url_key: int
    url: str
    kind: str
    depth: int
    priority: float
    source_url: str
    source_domain: str


class KeptRow(NamedTuple):
    """A page that the content gate lets into the index: its key, its text's fingerprints as stored.

    ``digest`` is 16 bytes without a signature and the last 8 with one.
    """

    host_key: int
    url_key: int
    url: str
    digest: bytes
    signature: bytes
