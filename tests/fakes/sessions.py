"""Builders for session tests: planned URLs, policies without pauses, scripted webs."""

from __future__ import annotations

from crawler.politeness import PolitenessPolicy
from crawler.session import ShardSession
from crawler.simulate import simulate
from crawler.urls import UrlKeys, host_of
from crawler.visit import ROBOTS, FetchPolicy, Reply
from schemas.state import DomainRules, UrlState, UrlStatus

KEYS = UrlKeys("test")
NOW = 1_800_000_000.0
ROBOTS_OK = "User-agent: *\nDisallow: /private\n"


def state_of(url: str, **facts) -> UrlState:
    row = UrlState(
        url, KEYS.host_key(host_of(url)), KEYS.url_key(url), UrlStatus.UNFETCHED, NOW, 0, 0.5, None, 1, NOW
    )
    return row._replace(**facts)


def policy_of(delay: float = 2.0, **fields) -> FetchPolicy:
    politeness = {
        name: fields.pop(name) for name in list(fields) if name in PolitenessPolicy.__dataclass_fields__
    }
    politeness = {"latency_factor": 0.0, "min_ip_delay_seconds": 0.0, **politeness}
    return FetchPolicy(
        PolitenessPolicy(min_delay_seconds=delay, **politeness), **{"concurrency": 4, **fields}
    )


def session_of(*urls, policy=None, minutes=60.0, hosts=(), robots=(), rules=None, **extra) -> ShardSession:
    items = [state_of(url) if isinstance(url, str) else url for url in urls]
    rules = rules or {}
    return ShardSession(
        items,
        {state.host: state for state in hosts},
        {state.authority: state for state in robots},
        lambda host: rules.get(host, DomainRules()),
        policy or policy_of(),
        NOW + minutes * 60,
        NOW,
        "seed",
        KEYS,
        **extra,
    )


class Web:
    """Answers by URL: a Reply field dict, or a list of them used up in turn. Logs (start, end, url)."""

    def __init__(self, pages=None, latency: float = 0.5) -> None:
        self.pages = pages or {}
        self.latency = latency
        self.log: list[tuple[float, float, str]] = []
        self.requests = []

    def __call__(self, ask, now: float) -> Reply:
        facts = self.pages.get(ask.request.url)
        if isinstance(facts, list):
            facts = facts.pop(0) if len(facts) > 1 else facts[0]
        if facts is None:
            facts = {"status": 404 if ask.kind == ROBOTS else 200}
        facts = dict(facts)
        end = now + facts.pop("latency", self.latency)
        self.log.append((now, end, ask.request.url))
        self.requests.append(ask.request)
        return Reply(now, end, **facts)

    @property
    def urls(self) -> list[str]:
        return [url for _, _, url in self.log]


def run(session, web, workers: int = 4):
    """Return {(kind, url): (outcome, reason)} after the session has run on the virtual clock."""
    result = simulate(session, NOW, workers, web)
    pairs = [((row.kind, row.url), (row.outcome, row.reason)) for row in result.rows]
    assert len(dict(pairs)) == len(pairs), "a URL has two rows"
    return dict(pairs)


def rows_of(session, web, workers: int = 4):
    """Return the rows by URL."""
    return {row.url: row for row in simulate(session, NOW, workers, web).rows}
