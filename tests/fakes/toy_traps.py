"""A web of traps, one a host: URL families without end, and one deep site that is no trap.

Every page of a trap has a text of its own, so that no trap is cut by the comparison of texts but the one that is
meant to be. What a trap may cost depends on ``Limits``; docs/scope.md gives the same sums for the defaults.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from urllib.parse import parse_qs, urlsplit

from tests.fakes.toy_web import Reply

DEEP = "www.deep.example"
FANOUT = 3
_RANDOM = random.Random(7)


@dataclass(frozen=True)
class Limits:
    """The crawl's limits that the budgets are made of, named as their flags."""

    max_depth: int
    max_path_segments: int
    max_url_length: int
    max_domain_hosts: int
    host_total_urls: int
    max_redirects: int = 5


@dataclass(frozen=True)
class Trap:
    """A host that is a trap: what a page links to, given host and target, and what it may cost in pages.

    ``rejected`` is the reason under which the crawl counts the links that it did not follow, None where none is
    rejected. ``redirects`` means that every page answers with a redirect to its first link, ``refreshes`` that it
    is a meta refresh.
    """

    links: Callable[[str, str], list[str]]
    budget: Callable[[Limits], int]
    rejected: str | None = None
    start: str = "/"
    same_text: bool = False
    redirects: bool = False
    refreshes: bool = False


def _fresh() -> str:
    return f"{_RANDOM.getrandbits(128):032x}"


def _param(target: str, name: str, otherwise: str) -> str:
    return parse_qs(urlsplit(target).query).get(name, [otherwise])[0]


def _calendar(host: str, target: str) -> list[str]:
    if not target.startswith("/calendar/"):
        return ["/calendar/2026/12"]
    year, month = (int(part) for part in target.split("/")[2:4])
    at = year * 12 + month - 1
    months = (at - 1, at + 1, at - 60, at + 6)
    return [f"/calendar/{month // 12}/{month % 12 + 1}" for month in months]


def _session(host: str, target: str) -> list[str]:
    # The same three pages for ever, each link with another id.
    return [f"/one?PHPSESSID={_fresh()}", f"/two?sid={_fresh()}", f"/three;jsessionid={_fresh().upper()}"]


def _pager(host: str, target: str) -> list[str]:
    page = int(_param(target, "page", "0"))
    return [f"/list?page={page + step}" for step in range(1, FANOUT + 1)]


def _leaps(host: str, target: str) -> list[str]:
    page = int(_param(target, "page", "1"))
    return [f"/list?page={page * 10}", f"/items?offset={page * 10}"]


def _reencode(host: str, target: str) -> list[str]:
    value = target.partition("?u=")[2] or "a%20b"
    return ["/go?u=" + value.replace("%", "%25")]


def _grow(host: str, target: str) -> list[str]:
    return [f"{target.rstrip('/')}/{_word(target)}/"]


def _lengthen(host: str, target: str) -> list[str]:
    return [f"/find?{target.partition('?')[2]}&{_word(target)}={'x' * 20}".replace("?&", "?")]


def _wildcard(host: str, target: str) -> list[str]:
    return [f"http://{_word(host)}{n}.wildcard.example/" for n in range(FANOUT)]


def _endless(host: str, target: str) -> list[str]:
    return [f"/about/{_word(target)}{n}" for n in range(FANOUT + 1)]


def _step(host: str, target: str) -> list[str]:
    return [f"/step?n={int(_param(target, 'n', '0')) + 1}"]


def _word(text: str) -> str:
    """Return a word without digits that depends on the text alone."""
    digits = blake2b(text.encode(), digest_size=5).hexdigest()
    return digits.translate({ord(str(n)): chr(ord("g") + n) for n in range(10)})


TRAPS: dict[str, Trap] = {
    "calendar.example": Trap(_calendar, lambda limits: 1 + 1 + 24 + 240, "trap_calendar"),
    "repeat.example": Trap(lambda h, t: ["shop/"], lambda limits: 1 + 2, "trap_repeating_path"),
    "session.example": Trap(_session, lambda limits: 1 + 3),
    "pager.example": Trap(_pager, lambda limits: 1 + FANOUT * limits.max_depth, "trap_depth"),
    "leaps.example": Trap(_leaps, lambda limits: 1 + 4 + 5, "trap_counter"),
    "reencode.example": Trap(_reencode, lambda limits: 1 + 2, "trap_reencoding"),
    "grow.example": Trap(_grow, lambda limits: 1 + limits.max_path_segments, "trap_path_segments"),
    "lengthen.example": Trap(_lengthen, lambda limits: 1 + limits.max_url_length // 20, "url_too_long"),
    "wildcard.example": Trap(_wildcard, lambda limits: limits.max_domain_hosts, "domain_hosts"),
    "endless.example": Trap(_endless, lambda limits: limits.host_total_urls, "host_total"),
    "template.example": Trap(_endless, lambda limits: 1 + FANOUT + 1, same_text=True),
    "redirect.example": Trap(_step, lambda limits: 1 + limits.max_redirects, redirects=True),
    "refresh.example": Trap(_step, lambda limits: 1 + limits.max_depth, "trap_depth", refreshes=True),
}


class TrapWeb:
    """Answers for every trap and for the deep site, whose pages are in ``deep``: URL -> links."""

    def __init__(self, limits: Limits) -> None:
        self.deep = _deep_site(limits)

    def seeds(self) -> list[str]:
        """Return the home page of every host."""
        return [f"http://{host}/" for host in (*TRAPS, DEEP)]

    def respond(self, host: str, target: str, *more: object) -> Reply:
        """Return the reply to GET ``target`` on ``host``."""
        if target == "/robots.txt":
            return Reply(404, b"none", "text/plain")
        if host == DEEP:
            links = self.deep.get(f"http://{host}{target}")
            return Reply(404, b"not here") if links is None else _page(host, target, links)
        name = trap_of(host)
        trap = TRAPS[name]
        links = trap.links(host, target)
        if trap.redirects:
            return Reply(302, headers=(("Location", links[0]),))
        if trap.refreshes:
            return _page(host, target, [], f'<meta http-equiv="refresh" content="0; url={links[0]}">')
        return _page(host, name if trap.same_text else target, links)


def trap_of(host: str) -> str:
    """Return the name of the trap that a host belongs to, the host itself where there is none."""
    domain = ".".join(host.split(".")[-2:])
    return domain if domain in TRAPS else host


def _page(host: str, text_of: str, links: list[str], head: str = "") -> Reply:
    words = random.Random(f"{host}{text_of}")
    text = " ".join(f"{words.choice('bcdfghk')}{words.getrandbits(40):x}" for _ in range(120))
    anchors = "".join(f'<a href="{link}">more</a> ' for link in links)
    body = f"<html><head><title>Page</title>{head}</head><body><article><p>{text}.</p></article>{anchors}</body></html>"
    return Reply(200, body.encode())


def _deep_site(limits: Limits) -> dict[str, list[str]]:
    """Return a site with much that looks like a trap: depth, repeats, dates, page numbers, many parameters."""
    root = f"http://{DEEP}"
    levels = [f"{root}/docs/part-{level}/" for level in range(1, limits.max_depth + 1)]
    nested = f"{root}/" + "".join(f"section-{n}/" for n in range(limits.max_path_segments))
    archive = [
        f"{root}/{year}/{month:02d}/{day:02d}/"
        for year in (1998, 2011)
        for month in (1, 11)
        for day in (1, 11)
    ]
    lists = [f"{root}/list?page={page}" for page in (2, 3, 500, 9_999)]
    odd = [
        nested,
        f"{root}/api/v1/api/v1/",
        f"{root}/cat/cat.html",
        f"{root}/year/2150",
        f"{root}/find?a=1&b=2&c=3&d=4&e=5&f=6",
        f"{root}/out?to=http%253A%252F%252Fa.example%252F",
        f"{root}/calendar/2025/12",
        f"{root}/calendar/2027/11",
        f"{root}/item?sid=42",
    ]
    pages = {f"{root}/": [levels[0], *archive, *lists, *odd]}
    pages |= {url: [] for url in (*archive, *lists, *odd)}
    pages |= {url: levels[level : level + 1] for level, url in enumerate(levels, start=1)}
    return pages
