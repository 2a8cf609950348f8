"""Rules against URL families without end. Each cuts a trap after a bounded number of pages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

from crawler.limits import ADMITTED, LinkContext, Verdict

_TOO_MANY_SEGMENTS = Verdict.reject("trap_path_segments")
_REPEATING = Verdict.reject("trap_repeating_path")
_REENCODED = Verdict.reject("trap_reencoding")
_CALENDAR = Verdict.reject("trap_calendar")
_COUNTER = Verdict.reject("trap_counter")

_REENCODING = re.compile(r"%25(?:25)+|(?:amp(?:;|%3B)){2}", re.IGNORECASE)

_CALENDAR_WORD = re.compile(
    r"(?<![a-z])(?:calend[a-z]*|kalend[a-z]*|cal|ical|agenda|events?|schedule|termine?|veranstaltungen|diary|day"
    r"|week|month)(?![a-z])",
    re.IGNORECASE,
)
_PATH_DATE = re.compile(r"/(\d{4})[/-](\d{1,2})(?:[/-]\d{1,2})?(?=/|$)")
_PATH_END = re.compile(r"/?(?:index\.\w+)?$")
_ISO_DATE = re.compile(r"(\d{4})(?:[-/.]|%2F)(\d{1,2})(?:(?:[-/.]|%2F)\d{1,2})?(?:T.*)?", re.IGNORECASE)
_COMPACT_DATE = re.compile(r"(\d{4})(\d{2})(?:\d{2})?")
_DATE_NAME = re.compile(
    r"(?:start|end|from|to|until|since|cal|event)?_?-?(?:date|datum|day|week|month|monat|mois|mes|ym|ymd)"
    r"|start|end|from|to|until|since|cal|d|m",
    re.IGNORECASE,
)
_YEAR_NAME = re.compile(r"(?:cal_?)?(?:year|yr|jahr|annee|ano)|y", re.IGNORECASE)
_MONTH_NAME = re.compile(r"(?:cal_?)?(?:month|mon|monat|mois|mes)|m", re.IGNORECASE)
_CENTURY_END = 2100

_PAGE_NAME = re.compile(
    r"(?:cur_?|current_?)?page(?:d|_?num(?:ber)?|_?no|_?nr|_?index)?|pg|seite|pagina", re.I
)
_OFFSET_NAME = re.compile(r"offset|skip|start(?:_?(?:at|index|row))?|limitstart", re.I)
_PATH_PAGE = re.compile(r"/page[/_-]?(\d+)(?=/|$|\.)", re.I)
_OFFSET_FACTOR = 10


def has_few_segments(link: LinkContext) -> Verdict:
    """Reject as trap_path_segments a path of more than ``max_path_segments`` segments, empty ones counted."""
    path = link.parts.path
    segments = path.count("/") - (len(path) > 1 and path.endswith("/"))
    return ADMITTED if segments <= link.policy.max_path_segments else _TOO_MANY_SEGMENTS


def does_not_repeat(link: LinkContext) -> Verdict:
    """Reject as trap_repeating_path a path that says a segment more than ``max_segment_repeats`` times.

    The host counts as said once, for links that lack their ``http://`` pile it up. Numbers of up to four
    digits may repeat: 2011/11/11/11 is a date.
    """
    path = link.parts.path
    if path.count("/") <= link.policy.max_segment_repeats:
        return ADMITTED
    counted = Counter(path.split("/"))
    counted[link.parts.host] += 1
    for segment, times in counted.items():
        if times > link.policy.max_segment_repeats and segment and not _is_short_number(segment):
            return _REPEATING
    return ADMITTED


def _is_short_number(segment: str) -> bool:
    return len(segment) <= 4 and segment.isdecimal()


def is_not_reencoded(link: LinkContext) -> Verdict:
    """Reject as trap_reencoding a URL that has been escaped again and again: ``%2525``, ``&amp;amp;``.

    One level (``%253A``, an address inside an address) is common and sound.
    """
    if "%25" not in link.url and "amp" not in link.url:
        return ADMITTED
    return _REENCODED if _REENCODING.search(link.url) else ADMITTED


class _FoundDate(NamedTuple):
    """A date in a URL. ``is_view`` where it is what the page shows, not a part of an article's address."""

    year: int
    month: int
    is_view: bool
    is_calendar: bool


def is_no_far_date(link: LinkContext) -> Verdict:
    """Reject as trap_calendar the view of a day or month that lies far from ``now``.

    A view ends in its date (``/2031/05``) or has it in the query. Ahead, views beyond
    ``calendar_years_ahead`` are rejected, without a word like ``calendar`` nearby only up to the year 2099,
    since other numbers look like years. Back, only views with such a word and beyond
    ``calendar_years_back``: an old article is no trap.
    """
    parts = link.parts
    if not _has_four_digits(parts.target):
        return ADMITTED
    this_month = _month_of(int(link.now // 86_400))
    last = this_month + 12 * link.policy.calendar_years_ahead
    first = this_month - 12 * link.policy.calendar_years_back
    for found in _dates(link):
        month = found.year * 12 + found.month - 1
        if month > last and (found.is_calendar or (found.is_view and found.year < _CENTURY_END)):
            return _CALENDAR
        if month < first and found.is_calendar and found.is_view:
            return _CALENDAR
    return ADMITTED


_FOUR_DIGITS = re.compile(r"\d{4}")


def _has_four_digits(target: str) -> bool:
    return _FOUR_DIGITS.search(target) is not None


@lru_cache(maxsize=16)
def _month_of(day: int) -> int:
    """Return months since year 0 of a day counted from 1970-01-01."""
    date = datetime.fromtimestamp(day * 86_400, UTC)
    return date.year * 12 + date.month - 1


def _dates(link: LinkContext) -> Iterator[_FoundDate]:
    path, query = link.parts.path, link.parts.query
    has_word = _CALENDAR_WORD.search(path) is not None
    for match in _PATH_DATE.finditer(path):
        if 1 <= int(match[2]) <= 12:
            is_view = _PATH_END.match(path, match.end()) is not None
            yield _FoundDate(int(match[1]), int(match[2]), is_view, has_word)
    if query is not None:
        yield from _query_dates(query, has_word)


def _query_dates(query: str, has_word: bool) -> Iterator[_FoundDate]:
    year = month = None
    for param in query.split("&"):
        name, _, value = param.partition("=")
        if not value[:1].isdigit() or len(value) > 40:
            continue
        is_date_name = _DATE_NAME.fullmatch(name) is not None
        found = _ISO_DATE.fullmatch(value) or (_COMPACT_DATE.fullmatch(value) if is_date_name else None)
        if found is not None and 1 <= int(found[2]) <= 12:
            yield _FoundDate(int(found[1]), int(found[2]), True, has_word or is_date_name)
        elif len(value) == 4 and value.isdecimal() and _YEAR_NAME.fullmatch(name):
            year = int(value)
        elif len(value) <= 2 and value.isdecimal() and _MONTH_NAME.fullmatch(name):
            month = int(value)
    if year is not None and month is not None and 0 <= month <= 12:
        yield _FoundDate(year, max(month, 1), True, True)


def is_no_far_count(link: LinkContext) -> Verdict:
    """Reject as trap_counter a page number beyond ``max_page_number``, or an item offset ten times beyond."""
    parts, most = link.parts, link.policy.max_page_number
    for number in _PATH_PAGE.findall(parts.path):
        if _exceeds(number, most):
            return _COUNTER
    for param in parts.query.split("&") if parts.query else ():
        name, _, value = param.partition("=")
        if not value.isdecimal() or len(value) < 2:
            continue
        if _PAGE_NAME.fullmatch(name) and _exceeds(value, most):
            return _COUNTER
        if _OFFSET_NAME.fullmatch(name) and _exceeds(value, most * _OFFSET_FACTOR):
            return _COUNTER
    return ADMITTED


def _exceeds(digits: str, most: int) -> bool:
    """Return whether the number is above ``most``, without converting numbers of absurd length."""
    return len(digits) > 18 or int(digits) > most
