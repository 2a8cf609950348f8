"""Numbers, spans and fixed words of a report, as a person reads them."""

from __future__ import annotations

from datetime import UTC, datetime

from transforms.report.html import NBSP

OUTCOMES = {
    "fetched": "new or changed content",
    "not_modified": "visited again, the same as before",
    "redirected": "answers with another URL",
    "duplicate": "content that the crawl holds under another URL",
    "robots_denied": "not asked: robots.txt forbids it",
    "excluded": "not kept: a rule of the crawl or of the page",
    "failed_retry": "no usable answer; will be tried again",
    "gone": "does not exist any more, or failed too often",
    "deferred": "planned, not attempted in this round",
}
"""The outcomes in the order of a report, and what each means."""

_SIZES = ("B", "KB", "MB", "GB", "TB", "PB")


def count(value: float) -> str:
    """Return a whole number with separators, or a small rate with two digits."""
    return f"{value:,.0f}" if value >= 100 or float(value).is_integer() else f"{value:,.3g}"


def size(value: float) -> str:
    """Return a number of bytes: powers of 1,000, three digits."""
    place = 0
    while value >= 999.5 and place < len(_SIZES) - 1:
        value, place = value / 1000, place + 1
    return f"{value:.3g}{NBSP}{_SIZES[place]}" if place else f"{value:.0f}{NBSP}B"


def binary_size(value: float) -> str:
    """Return a power of two of bytes: 4 KiB."""
    for unit, factor in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if value >= factor:
            return f"{value / factor:g}{NBSP}{unit}"
    return f"{value:g}{NBSP}B"


def span(seconds: float) -> str:
    """Return a length of time in its two largest units that matter."""
    if seconds < 59.5:
        return f"{seconds:.3g}{NBSP}s" if seconds < 10 else f"{seconds:.0f}{NBSP}s"
    for unit, length, part, step in (("d", 86_400, "h", 3_600), ("h", 3_600, "min", 60), ("min", 60, "s", 1)):
        if round(seconds / step) * step >= length:
            whole, rest = divmod(round(seconds / step), length // step)
            return f"{whole}{NBSP}{unit} {rest}{NBSP}{part}" if rest else f"{whole}{NBSP}{unit}"
    raise ValueError(f"not a length of time: {seconds}")


def millis(value: float) -> str:
    """Return milliseconds as milliseconds or seconds."""
    return f"{value:.0f}{NBSP}ms" if value < 1000 else span(value / 1000)


def instant(text: str) -> str:
    """Return an RFC 3339 instant as date and time in UTC, to the second."""
    return f"{datetime.fromisoformat(text).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
