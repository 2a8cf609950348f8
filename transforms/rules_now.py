"""What the rules in force say of a URL today: the crawl's own, the operator's, and the site's. Imports no Beam."""

from __future__ import annotations

from typing import Any

from connectors.calendar_lookup import Standing
from crawler.robots import ALLOW, RULES, RobotsRules
from crawler.urls import authority_of, host_of, registered_domain
from schemas.page import CandidateRow
from schemas.state import DomainRules, RobotsState
from transforms.admission import Admission, LinkGate
from transforms.crawl_now import CrawlNow, instant
from transforms.state_tables import ROBOTS, known_robots


def refusal(crawl: CrawlNow, url: str, standing: Standing | None, is_known: bool) -> str | None:
    """Return the rule by which a link to a normal URL would be refused today, None when it would be admitted.

    A known URL is judged as the link by which it was found. An unknown one as a link from the home page of its
    own host, one step from a seed; the totals of its host and domain count, too.
    """
    if standing is not None:
        state = standing.state
        return LinkGate(crawl).refusal(url, state.depth, state.discovered_from)
    if is_known:
        return LinkGate(crawl).refusal(url, 0, None)
    host = host_of(url)
    host_key, url_key = crawl.keys_of(url)
    # The home page at the default port: a port that no rule allows is for the pages served there to name.
    name = f"[{host}]" if ":" in host else host
    source = f"{url.partition('://')[0]}://{name}/"
    row = CandidateRow(host_key, url_key, url, "link", 1, 0.5, source, registered_domain(host))
    return Admission(crawl, crawl.partition(url), [row]).refusal(row)


def robots_state(crawl: CrawlNow, url: str) -> RobotsState | None:
    """Return the copy of robots.txt that the crawl holds for a URL, None when it holds none."""
    entries = crawl.entries(ROBOTS.name, crawl.partition(url))
    pair = (crawl.keys_of(url)[0], authority_of(url))
    found = known_robots(crawl.storage, entries, [pair], crawl.keys)
    return found[0] if found else None


def robots_verdict(crawl: CrawlNow, url: str) -> dict[str, Any] | None:
    """Return what that copy says of the URL, as members; None when there is no copy."""
    state = robots_state(crawl, url)
    if state is None:
        return None
    rules = RobotsRules(state.body, crawl.spec.flags.user_agent) if state.access == RULES else None
    verdict = rules.verdict(url) if rules is not None else None
    return {
        "access": state.access,
        "status": state.status,
        "reason": state.reason,
        "fetched_at": instant(state.fetched_at),
        "expires_at": instant(state.expires_at),
        "allowed": state.access == ALLOW if verdict is None else verdict.allowed,
        "rule": verdict.rule if verdict else None,
        "crawl_delay_seconds": verdict.crawl_delay_seconds if verdict else None,
    }


def operator_rules(crawl: CrawlNow, host: str) -> dict[str, Any]:
    """Return the operator's rules for a host, those alone that differ from the default."""
    defaults = DomainRules()._asdict()
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in crawl.policy.rules_for(host)._asdict().items()
        if value != defaults[name]
    }
