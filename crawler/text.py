"""The main text of a page, without navigation, advertisements and comments."""

from __future__ import annotations

import logging
import re
from itertools import islice
from typing import NamedTuple

import trafilatura
from trafilatura.utils import line_processing, trim

from crawler.characters import clean_lines

MAX_INPUT_CHARS = 2 * 1024 * 1024
"""Longer documents are cut: the extractor takes up to 3 s and 250 MB a million characters."""

MAX_TEXT_CHARS = 1024 * 1024
"""The most that is kept of a text: a long book."""

MAX_INPUT_TAGS = 50_000
"""Documents with more tags are cut too: the extractor takes up to 3 s for so many, however short."""

_TAG = re.compile("<")

# What it logs (pages that are empty or broken) is a value here, and a line a page would drown the log.
logging.getLogger("trafilatura").setLevel(logging.CRITICAL)


class EmptyReason:
    """Why a page has no text: a fact about the page, not an error."""

    EMPTY_BODY = "empty_body"
    NOT_HTML = "not_html"
    NO_MAIN_TEXT = "no_main_text"
    EXTRACTOR_FAILED = "extractor_failed"


class MainText(NamedTuple):
    """Text as valid Unicode without control characters, lines ending in a line feed; or '' and the reason."""

    text: str
    empty_reason: str | None


def main_text(html: str) -> MainText:
    """Return the main text of an HTML document by trafilatura in fast mode, comments left out.

    Only the first MAX_INPUT_CHARS characters and MAX_INPUT_TAGS tags are read. Raises nothing but MemoryError.
    """
    html = _at_most(html[:MAX_INPUT_CHARS], MAX_INPUT_TAGS)
    if not html.strip("\0 \t\n\x0c\r"):
        return MainText("", EmptyReason.EMPTY_BODY)
    if "<" not in html:
        return MainText("", EmptyReason.NOT_HTML)
    if "html" not in html[:50].lower():
        # The extractor takes a document for a fragment, or refuses it, unless "html" stands at the start.
        html = f"<!doctype html>{html}"
    try:
        text = trafilatura.extract(html, fast=True, include_comments=False) or ""
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001  any fault of the extractor on any page is a fact about that page
        return MainText("", EmptyReason.EXTRACTOR_FAILED)
    finally:
        # Both keep the last 1024 strings, however long: gigabytes in a hostile crawl.
        line_processing.cache_clear()
        trim.cache_clear()
    return _named(clean_lines(text).strip(), EmptyReason.NO_MAIN_TEXT)


def plain_text(decoded: str) -> MainText:
    """Return a text/plain document as its own text, cut like an HTML one."""
    return _named(clean_lines(decoded[:MAX_INPUT_CHARS]).strip(), EmptyReason.EMPTY_BODY)


def _at_most(html: str, tags: int) -> str:
    """Return the document up to its first ``tags`` tags."""
    if html.count("<") <= tags:
        return html
    return html[: next(islice(_TAG.finditer(html), tags, None)).start()]


def _named(text: str, reason: str) -> MainText:
    return MainText(text[:MAX_TEXT_CHARS], None if text else reason)
