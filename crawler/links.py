"""The hyperlinks of one page, each target once and in normal form."""

from __future__ import annotations

from collections import Counter

from crawler.characters import one_line
from crawler.urls import NormalUrl, normalise
from schemas.page import Link

MAX_LINKS = 5000
MAX_ANCHOR_CHARS = 500
MAX_REL_CHARS = 100
MAX_TARGET_CHARS = 8_192
MAX_TARGETS_CHARS = 2_097_152
LIMIT_REASON = "too_many_links"


class LinkCollector:
    """Resolves hrefs against one base and keeps the first link to each target, in document order.

    Every href that is added ends as a link, as a repetition of one, or in ``rejected`` under its reason:
    those of ``normalise``, url_too_long for a target above MAX_TARGET_CHARS, and too_many_links once
    ``max_links`` targets are kept or they take MAX_TARGETS_CHARS: a long base makes short links long.
    """

    def __init__(self, base_url: str, encoding: str, max_links: int) -> None:
        self.base_url = base_url
        self._encoding = encoding
        self._max_links = max_links
        self._links: dict[str, Link] = {}
        self._room_chars = MAX_TARGETS_CHARS
        self._seen: set[str] = set()
        self._refused: dict[str, str] = {}
        self._rejected: Counter[str] = Counter()

    def is_new(self, href: str) -> bool:
        """Tell whether this href, letter for letter, has not been added before."""
        return href not in self._seen

    def add(self, href: str, anchor: str, rel: str) -> None:
        """Take one link; ``anchor`` and ``rel`` as they stand in the page."""
        if href in self._seen:
            return
        if len(self._links) >= self._max_links or self._room_chars <= 0:
            self._rejected[LIMIT_REASON] += 1
            return
        reason = self._refused.get(href)
        if reason is not None:
            self._rejected[reason] += 1
            return
        target = normalise(href, self.base_url, self._encoding)
        if not isinstance(target, NormalUrl) or len(target.url) > MAX_TARGET_CHARS:
            reason = "url_too_long" if isinstance(target, NormalUrl) else target.reason
            self._refused[href] = reason
            self._rejected[reason] += 1
            return
        self._seen.add(href)
        if target.url not in self._links:
            self._room_chars -= len(target.url)
            self._links[target.url] = Link(target.url, one_line(anchor, MAX_ANCHOR_CHARS), _tokens(rel))

    def links(self) -> tuple[Link, ...]:
        """Return the links in the order in which their targets were first met."""
        return tuple(self._links.values())

    def rejected(self) -> tuple[tuple[str, int], ...]:
        """Return (reason, hrefs), sorted by reason."""
        return tuple(sorted(self._rejected.items()))


def _tokens(rel: str) -> str:
    """Return a rel attribute's tokens in lower case, each once, in order (HTML section 4.6.7)."""
    return one_line(" ".join(dict.fromkeys(rel.lower().split())), MAX_REL_CHARS) if rel else ""
