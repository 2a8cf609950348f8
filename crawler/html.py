"""What one parse of an HTML page tells: title, language, canonical URL, robots directives, links."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

import ada_url
from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from crawler.characters import one_line
from crawler.directives import read_directives
from crawler.links import MAX_LINKS, LinkCollector
from crawler.scripted import without_head_noscript
from crawler.urls import NormalUrl, normalise
from schemas.page import Link

MAX_TITLE_CHARS = 1000
MAX_ANCHORS_CHARS = 4_194_304
_SELECTOR = (
    "html[lang],title,base[href],meta[content],link[rel][href],a[href],area[href],iframe[src],frame[src]"
)
_PAGING = {"next", "prev", "previous"}
_LANGUAGE = re.compile(r"[A-Za-z]{2,8}(?:[-_][A-Za-z0-9]{1,8})*")
_REFRESH = re.compile(r"\s*+(?:[0-9]++|(?=\.))[0-9.]*+(?:\s*+[;,]\s*+|\s++)(.+)", re.DOTALL | re.ASCII)
_REFRESH_URL = re.compile(r"url\s*+=\s*+", re.IGNORECASE | re.ASCII)


class HtmlFacts(NamedTuple):
    """What stands in a page. URLs are in normal form; ``links`` in document order, each target once.

    ``base_url`` is what links were resolved against, as the URL parser writes it, not in normal form.
    ``rejected_links`` counts by reason the hrefs that are no link to follow.
    """

    title: str | None
    language: str | None
    base_url: str
    canonical_url: str | None
    refresh_url: str | None
    noindex: bool
    nofollow: bool
    links: tuple[Link, ...]
    rejected_links: tuple[tuple[str, int], ...]


def read_html(
    html: str,
    page_url: str,
    encoding: str = "utf-8",
    robots_header: Iterable[str] = (),
    agent_token: str = "",
    max_links: int = MAX_LINKS,
) -> HtmlFacts:
    """Return the facts of a page that was read as ``html`` from ``page_url`` (in normal form).

    Links are a[href], area[href], iframe and frame[src], link[rel=next|prev]; not inside <template>.
    ``encoding`` is the page's, in which its non-ASCII queries are meant. Base, refresh and canonical follow
    the HTML standard with scripting on: inside <noscript> they do not count. Raises nothing but MemoryError.
    """
    nodes = _by_tag(_parsed(without_head_noscript(html)))
    base = _base_url(nodes.get("base", ()), page_url)
    collector = LinkCollector(base, encoding, max_links)
    _collect(nodes.get("link to follow", ()), collector)
    metas = [(_attribute(node, "name"), _attribute(node, "content")) for node in nodes.get("meta", ())]
    directives = read_directives(metas, robots_header, agent_token)
    return HtmlFacts(
        title=_title(nodes.get("title", ())),
        language=_language(nodes),
        base_url=base,
        canonical_url=_canonical_url(nodes.get("canonical", ()), base, encoding),
        refresh_url=_refresh_url(nodes.get("meta", ()), base, encoding),
        noindex=directives.noindex,
        nofollow=directives.nofollow,
        links=collector.links(),
        rejected_links=collector.rejected(),
    )


def _parsed(html: str) -> LexborHTMLParser:
    try:
        return LexborHTMLParser(html)
    except SelectolaxError as error:
        # The parser takes any text: what it fails of is memory.
        raise MemoryError(str(error)) from error


def _by_tag(parser: LexborHTMLParser) -> dict[str, list[LexborNode]]:
    """Return the elements that matter, in document order, by what they are looked at for."""
    found: dict[str, list[LexborNode]] = {}
    for node in parser.css(_SELECTOR):
        kind = node.tag or ""
        if kind in ("a", "area", "iframe", "frame"):
            kind = "link to follow"
        elif kind == "link":
            rels = set(_attribute(node, "rel").lower().split())
            if "canonical" in rels:
                found.setdefault("canonical", []).append(node)
            kind = "link to follow" if rels & _PAGING else "link"
        found.setdefault(kind, []).append(node)
    return found


def _attribute(node: LexborNode, name: str) -> str:
    return node.attrs.get(name) or ""


def _is_inside(node: LexborNode, tags: tuple[str, ...]) -> bool:
    parent = node.parent
    while parent is not None:
        if parent.tag in tags:
            return True
        parent = parent.parent
    return False


def _base_url(bases: Iterable[LexborNode], page_url: str) -> str:
    """Return the document's base URL (HTML section 2.4.3): the first base that stands outside <noscript>."""
    for node in bases:
        if not _is_inside(node, ("noscript",)):
            try:
                base: str = ada_url.join_url(page_url, _attribute(node, "href"))
            except ValueError:
                return page_url
            return page_url if base.startswith(("data:", "javascript:")) else base
    return page_url


def _collect(nodes: Iterable[LexborNode], collector: LinkCollector) -> None:
    budget = MAX_ANCHORS_CHARS
    for node in nodes:
        attributes = node.attributes
        href = attributes.get("href" if node.tag in ("a", "area", "link") else "src") or ""
        anchor = ""
        if node.tag == "a" and budget > 0 and collector.is_new(href):
            anchor = node.text()
            budget -= len(anchor)
        collector.add(href, anchor, attributes.get("rel") or "")


def _title(titles: Iterable[LexborNode]) -> str | None:
    for node in titles:
        if not _is_inside(node, ("svg", "math")):
            return one_line(node.text(), MAX_TITLE_CHARS) or None
    return None


def _language(nodes: dict[str, list[LexborNode]]) -> str | None:
    """Return the language of html[lang], else of a Content-Language meta, cased as RFC 5646 section 2.1.1."""
    tags = [_attribute(node, "lang") for node in nodes.get("html", ())]
    tags += [
        _attribute(node, "content").split(",")[0]
        for node in nodes.get("meta", ())
        if _attribute(node, "http-equiv").lower() == "content-language"
    ]
    for tag in tags:
        tag = tag.strip()
        if len(tag) <= 35 and _LANGUAGE.fullmatch(tag):
            first, *rest = tag.replace("_", "-").lower().split("-")
            return "-".join([first, *(_cased_subtag(subtag) for subtag in rest)])
    return None


def _cased_subtag(subtag: str) -> str:
    if len(subtag) == 2:
        return subtag.upper()
    return subtag.title() if len(subtag) == 4 and subtag.isalpha() else subtag


def _canonical_url(links: Iterable[LexborNode], base: str, encoding: str) -> str | None:
    """Return the page's canonical URL; several that differ are no evidence for any."""
    targets = {normalise(_attribute(node, "href"), base, encoding) for node in links}
    only = targets.pop() if len(targets) == 1 else None
    return only.url if isinstance(only, NormalUrl) else None


def _refresh_url(metas: Iterable[LexborNode], base: str, encoding: str) -> str | None:
    """Return where the first meta refresh leads (HTML section 4.2.5.3), None if it only reloads the page."""
    for node in metas:
        if _attribute(node, "http-equiv").strip().lower() != "refresh" or _is_inside(node, ("noscript",)):
            continue
        match = _REFRESH.match(_attribute(node, "content"))
        if match is None:
            continue
        raw = _REFRESH_URL.sub("", match[1], count=1) if _REFRESH_URL.match(match[1]) else match[1]
        if raw[:1] in ("'", '"'):
            raw = raw[1:].partition(raw[0])[0]
        target = normalise(raw, base, encoding) if raw.strip() else None
        return target.url if isinstance(target, NormalUrl) else None
    return None
