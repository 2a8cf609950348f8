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

_REENCODING = re.compile(r"%25(?:25)+|(?:amp(?:;|%3B)){2}")

_CALENDAR_WORD = re.compile(
    r"(?<![a-z])(?:calend[a-z]*|kalend[a-z]*|cal|ical|agenda|events?|schedule|termine?|veranstaltungen|diary|day"
    r"|week|month)(?![a-z])",
    re.IGNORECASE,
)
_FOUR_DIGITS = re.compile(r"\d{4}")
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
_CENTURY_END = 2100 * 12

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
    most = link.policy.max_segment_repeats
    segments = link.parts.path.strip("/").split("/")
    if len(segments) - len(set(segments)) < most - 1:
        return ADMITTED
    counted = Counter([link.parts.host, *segments])
    for segment, times in counted.items():
        if times > most and segment and not _is_short_number(segment):
            return _REPEATING
    return ADMITTED


def _is_short_number(segment: str) -> bool:
    return len(segment) <= 4 and segment.isdecimal()


def is_not_reencoded(link: LinkContext) -> Verdict:
    """Reject as trap_reencoding a URL that has been escaped again and again: ``%2525``, ``&amp;amp;``.

    One level (``%253A``, an address inside an address) is common and sound.
    """
    if "%" not in link.url and "amp;" not in link.url:
        return ADMITTED
    return _REENCODED if _REENCODING.search(link.url) else ADMITTED


class _FoundDate(NamedTuple):
    """A date in a URL, in months since year 0.

    ``is_view`` where it is what the page shows, not a part of an article's address.
    """

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
    if _FOUR_DIGITS.search(link.url) is None:
        return ADMITTED
    policy = link.policy
    near = _months_around(link.now // 86_400, policy.calendar_years_back, policy.calendar_years_ahead)
    for found in _far_dates(link, near):
        if found.month >= near.stop:
            if found.is_calendar or (found.is_view and found.month < _CENTURY_END):
                return _CALENDAR
        elif found.is_calendar and found.is_view:
            return _CALENDAR
    return ADMITTED


@lru_cache(maxsize=64)
def _months_around(day: float, years_back: int, years_ahead: int) -> range:
    """Return the months since year 0 that lie near a day, which is counted from 1970-01-01."""
    date = datetime.fromtimestamp(day * 86_400, UTC)
    month = date.year * 12 + date.month - 1
    return range(month - 12 * years_back, month + 12 * years_ahead + 1)


def _far_dates(link: LinkContext, near: range) -> Iterator[_FoundDate]:
    path, query = link.parts.path, link.parts.query
    for match in _PATH_DATE.finditer(path):
        month = _month_in(match)
        if month is not None and month not in near:
            is_view = _PATH_END.match(path, match.end()) is not None
            yield _FoundDate(month, is_view, _has_calendar_word(path))
    if query is not None and _FOUR_DIGITS.search(query):
        for month, is_date_name in _query_months(query):
            if month not in near:
                yield _FoundDate(month, True, is_date_name or _has_calendar_word(path))


def _has_calendar_word(path: str) -> bool:
    return _CALENDAR_WORD.search(path) is not None


def _month_in(match: re.Match[str]) -> int | None:
    year, month = int(match[1]), int(match[2])
    return year * 12 + month - 1 if 1 <= month <= 12 else None


def _query_months(query: str) -> Iterator[tuple[int, bool]]:
    """Yield the month of each date in the query, and whether its parameter's name says that it is one."""
    year = month = None
    for param in query.split("&"):
        name, _, value = param.partition("=")
        if len(value) > 40 or not value[:4].isdecimal():
            continue
        if len(value) <= 2:
            month = int(value) if _MONTH_NAME.fullmatch(name) else month
        elif match := _ISO_DATE.fullmatch(value) or _COMPACT_DATE.fullmatch(value):
            is_date_name = _DATE_NAME.fullmatch(name) is not None
            found = _month_in(match)
            if found is not None and (is_date_name or not value.isdecimal()):
                yield found, is_date_name
        elif len(value) == 4 and _YEAR_NAME.fullmatch(name):
            year = int(value)
    if year is not None and month is not None and 0 <= month <= 12:
        yield year * 12 + max(month, 1) - 1, True


def is_no_far_count(link: LinkContext) -> Verdict:
    """Reject as trap_counter a page number beyond ``max_page_number``, or an item offset ten times beyond."""
    parts, most = link.parts, link.policy.max_page_number
    if parts.query is None and "/page" not in parts.path and "/Page" not in parts.path:
        return ADMITTED
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
