"""From the bytes of a capture to a parsed page. Pure: the same input gives the same page, on any machine."""

from __future__ import annotations

import hashlib
from base64 import b32encode
from typing import NamedTuple

from crawler import sniff
from crawler.charset import decide, decode
from crawler.directives import read_directives
from crawler.html import HtmlFacts, read_html
from crawler.links import MAX_LINKS
from crawler.mime import parse_content_type
from crawler.nesting import shallow
from crawler.text import main_text, plain_text
from schemas.page import ParsedPage

_HTML_TYPES = {sniff.HTML, sniff.XHTML}
_XML_TYPES = {"text/xml", "application/xml"}
_OTHER_XML_TYPES = {"application/rss+xml", "application/atom+xml", "application/rdf+xml", "image/svg+xml"}
_UNKNOWN_TYPES = {"unknown/unknown", "application/unknown"}


class ParseInput(NamedTuple):
    """One body and what its response said of it.

    ``body`` has its content coding removed. ``robots_tag`` holds the X-Robots-Tag fields, one a line.
    ``agent_token`` is our product token (RFC 9309 section 2.2.1). At most ``max_links`` links are kept.
    """

    url: str
    body: bytes
    content_type: str | None = None
    robots_tag: str | None = None
    agent_token: str = ""
    max_links: int = MAX_LINKS


def page_kind(content_type: str | None, sniffed: str | None) -> str | None:
    """Return html or plain for a document that is a page, None for what is none (reason unsupported_type).

    The header decides; the sniffed type (``crawler.sniff``) steps in where there is no readable header, and
    can only take away from it: a PDF or a feed under text/html is no page, nor are binary bytes under
    text/plain (WHATWG MIME Sniffing sections 7 and 7.2). XHTML served as XML is a page.
    """
    media_type = parse_content_type(content_type)
    claimed = media_type.essence if media_type is not None else None
    if claimed is None or claimed in _UNKNOWN_TYPES:
        claimed = sniffed
    if claimed in _XML_TYPES and sniffed == sniff.XHTML:
        return "html"
    is_text = sniffed is None or sniffed.startswith("text/") or sniffed in (sniff.XHTML, "application/json")
    if claimed in _HTML_TYPES:
        return "html" if is_text or sniffed == sniff.BINARY else None
    if claimed == sniff.TEXT:
        return "plain" if is_text or sniffed in _OTHER_XML_TYPES else None
    return None


def is_page_type(content_type: str | None, sniffed: str | None) -> bool:
    """Tell whether a body is HTML, XHTML or plain text, by its header and its sniffed type."""
    return page_kind(content_type, sniffed) is not None


def parse_page(page: ParseInput) -> ParsedPage:
    """Return everything the crawl keeps of a page.

    ``content_hash`` is SHA-1 of the body, base32; links are in document order. A body that is no page (see
    ``is_page_type``) is read as HTML. Never raises for any bytes, except MemoryError; time grows with the
    body, and hostile markup can make it long: run it where it can be killed.
    """
    choice = decide(page.body, page.content_type)
    decoded = decode(page.body, choice)
    if page_kind(page.content_type, sniff.sniff(page.body)) == "plain":
        facts, text = _plain_facts(page), plain_text(decoded)
    else:
        decoded = shallow(decoded)
        facts = read_html(
            decoded, page.url, choice.name, _lines(page.robots_tag), page.agent_token, page.max_links
        )
        text = main_text(decoded)
    return ParsedPage(
        url=page.url,
        title=facts.title,
        language=facts.language,
        charset=choice.name,
        charset_source=choice.source,
        canonical_url=facts.canonical_url,
        noindex=facts.noindex,
        nofollow=facts.nofollow,
        text=text.text,
        empty_reason=text.empty_reason,
        content_hash=content_hash(page.body),
        links=facts.links,
        rejected_links=facts.rejected_links,
        refresh_url=facts.refresh_url,
    )


def content_hash(body: bytes) -> str:
    """Return the identity of a body: SHA-1 in base32, 32 characters, as WARC digests are written."""
    return b32encode(hashlib.sha1(body, usedforsecurity=False).digest()).decode("ascii")


def _lines(robots_tag: str | None) -> list[str]:
    return (robots_tag or "").split("\n")


def _plain_facts(page: ParseInput) -> HtmlFacts:
    said = read_directives((), _lines(page.robots_tag), page.agent_token)
    return HtmlFacts(None, None, page.url, None, None, said.noindex, said.nofollow, (), ())
