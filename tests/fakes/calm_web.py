"""A small toy web whose crawl does not depend on when it is crawled: the same in one go or in pieces."""

from __future__ import annotations

from tests.fakes.toy_server import Access
from tests.fakes.toy_web import HUB, ToyWeb

SLOW_HOST = "www.robots-private.example"
_UNCALM = ("http://www.robots-503.example/", "http://www.busy.example/", "/busy")


def calm_web(
    sites: int = 3, pages: int = 3, crawl_delay_seconds: float = 0.5, slow_seconds: float = 0.2
) -> ToyWeb:
    """Return a toy web without hosts that ask to come back later (429, 503): their turn is up to the clock.

    One host, ``SLOW_HOST``, asks for ``crawl_delay_seconds`` between requests, and one page takes
    ``slow_seconds`` to come.
    """
    web = ToyWeb(
        sites=sites, pages=pages, robots_delay_seconds=crawl_delay_seconds, slow_seconds=slow_seconds
    )
    for url in (f"http://{HUB}/", "http://www.trouble.example/"):
        page = web.pages[url]
        page.links = [link for link in page.links if link not in _UNCALM]
    return web


def pacing_faults(log: list[Access], delay_seconds: float, crawl_delay_seconds: float) -> list[str]:
    """Return every pair of requests to one host that overlap or stand closer than the host's delay."""
    last: dict[str, Access] = {}
    faults = []
    for access in sorted(log, key=lambda access: access.arrived_at):
        delay = max(delay_seconds, crawl_delay_seconds if access.host == SLOW_HOST else 0.0)
        before = last.get(access.host)
        if before is not None and access.arrived_at - before.ended_at < delay - 0.005:
            faults.append(f"{access.arrived_at - before.ended_at:.3f} s between {before} and {access}")
        last[access.host] = access
    return faults
