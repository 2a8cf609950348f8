"""The identity of a crawl: what crawl.json holds, written once."""

from __future__ import annotations

from typing import NamedTuple


class CrawlIdentity(NamedTuple):
    """Facts that never change in a crawl's life.

    ``partitions`` is a power of two; ``salt`` keys every hash of the crawl; ``scope`` is any, domain or host.
    """

    format_version: int
    name: str
    partitions: int
    salt: str
    scope: str = "any"
    created_at: str = ""
