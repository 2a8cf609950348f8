"""Where a redirect leads, and whether this round follows it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from crawler.outcomes import GONE, REDIRECTED, is_redirect
from crawler.urls import NormalUrl, host_of, normalise, registered_domain
from crawler.visit import HOP, Reply, Visit
from schemas.fetch import OutcomeRow

FOLLOWED = "redirect_followed"
QUEUED = "redirect_queued"
INVALID = "redirect_invalid"
LOOP = "redirect_loop"
TOO_MANY = "too_many_redirects"


class Redirect(NamedTuple):
    """The outcome and reason of a 3xx, its target in normal form, and the visit that follows it, if any."""

    outcome: str
    reason: str
    target: str | None
    visit: Visit | None


def target_of(visit: Visit, reply: Reply) -> str | None:
    """Return the normal form of the URL that a redirect names, None when it names none to crawl."""
    if not is_redirect(reply):
        return None
    target = normalise(reply.location or "", visit.url)
    return target.url if isinstance(target, NormalUrl) else None


def stays_in_domain(visit: Visit, target: str) -> bool:
    """Return whether a target belongs to the visit's registered domain, and so to the same shard."""
    return registered_domain(host_of(target)) == registered_domain(visit.host)


def redirect_of(
    visit: Visit, reply: Reply, max_redirects: int, may_follow: Callable[[str, str], bool]
) -> Redirect:
    """Return what becomes of a redirect.

    Followed within the registered domain, up to ``max_redirects`` hops, when ``may_follow`` allows target and
    source; any other target is left for a later round (redirect_queued). A loop, or a hop too many, is gone
    and its target is not to become a candidate: else each round would walk an endless chain a little
    further. No usable Location is redirect_invalid.
    """
    target = target_of(visit, reply)
    if target is None:
        return Redirect(REDIRECTED, INVALID, None, None)
    chain = (*visit.chain, visit.url)
    if target in chain:
        return Redirect(GONE, LOOP, target, None)
    if not stays_in_domain(visit, target) or not may_follow(target, visit.url):
        return Redirect(REDIRECTED, QUEUED, target, None)
    if len(chain) > max_redirects:
        return Redirect(GONE, TOO_MANY, target, None)
    cookies = {(host, name): value for host, name, value in visit.cookies}
    cookies.update({(visit.host, name): value for name, value in reply.cookies})
    jar = tuple((host, name, value) for (host, name), value in cookies.items())
    hop = Visit(HOP, target, host_of(target), visit.state, chain, cookies=jar)
    return Redirect(REDIRECTED, FOLLOWED, target, hop)


def open_chains(rows: Iterable[OutcomeRow]) -> dict[str, tuple[str, ...]]:
    """Return the redirects that a journal's rows record as followed, but whose target has no row yet.

    From the planned URL to all URLs of its chain, the one still to be asked last. A session that resumes
    takes them up again.
    """
    followed: dict[tuple[str, str], str] = {}
    recorded: set[tuple[str, str]] = set()
    for row in rows:
        if row.kind == "robots":
            continue
        recorded.add((row.planned_url, row.url))
        if row.reason == FOLLOWED and row.redirect_url is not None:
            followed[row.planned_url, row.url] = row.redirect_url
    chains = {}
    for planned_url, url in followed:
        if planned_url == url:
            chain = [url]
            while (planned_url, chain[-1]) in followed:
                chain.append(followed[planned_url, chain[-1]])
            if (planned_url, chain[-1]) not in recorded:
                chains[planned_url] = tuple(chain)
    return chains
