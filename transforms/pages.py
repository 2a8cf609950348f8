"""What one page process does with one body: decode, parse, sketch. Imports no Beam, so a process starts fast."""

from __future__ import annotations

from typing import NamedTuple

from connectors.encoding import decode_body
from connectors.page_pool import PagePool, shared_page_pool
from schemas.flags import CrawlFlags
from schemas.page import ParsedPage, Sketch


class PageTask(NamedTuple):
    """One body as stored, and the headers that say how to read it."""

    url: str
    body: bytes
    content_encoding: str | None
    content_type: str | None
    robots_tag: str | None
    agent_token: str
    max_body_bytes: int


class PageResult(NamedTuple):
    """A parsed page and its sketch."""

    page: ParsedPage
    sketch: Sketch


def read_page(task: PageTask) -> PageResult:
    """Return the page and its sketch. Runs in a page process: it may be killed at any moment."""
    # Imported here so that a worker that only fetches does not load the extraction libraries.
    from crawler.neardup import sketch_of
    from crawler.parse import ParseInput, parse_page

    body = decode_body(task.body, task.content_encoding, task.max_body_bytes).data
    page = parse_page(
        ParseInput(
            url=task.url,
            body=body,
            content_type=task.content_type,
            robots_tag=task.robots_tag,
            agent_token=task.agent_token,
        )
    )
    # A page without text is identified by its bytes, so that empty extractions never match each other.
    return PageResult(page, sketch_of(page.text or f"content {page.content_hash}"))


def page_pool(flags: CrawlFlags) -> PagePool[PageTask, PageResult]:
    """Return this process's pool of page processes, started at the first page and kept."""
    return shared_page_pool(read_page, flags.page_processes, preload=("crawler.parse", "crawler.neardup"))


def agent_token(user_agent: str) -> str:
    """Return the product token of NAME/VERSION (RFC 9309 section 2.2.1)."""
    return user_agent.split("/", 1)[0].strip()
