"""How many URLs of a host or a registered domain one round may take."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from crawler.politeness import usual_latency
from crawler.ranks import Flags, Floats, Ints, Keys
from schemas.state import DomainRules, HostState

LEAST_TURN_SECONDS = 0.01
NO_LIMIT = 2**62
_USABLE_SHARE = 0.9
_FULL_SHARE = 0.95

RulesOf = Callable[[str], DomainRules]
_Given = TypeVar("_Given", int, float)


@dataclass(frozen=True, slots=True)
class FrontierPolicy:
    """Budgets of one round. ``None`` means no limit of that kind; a bad value raises ValueError.

    ``max_domain_hosts`` bounds how many hosts of one registered domain a crawl ever asks, against wildcard
    DNS: Common Crawl allows from under 100 to 500,000 by the domain's rank, the default lies between.
    ``new_share`` of a host's budget is kept for URLs newer than its backlog. A host whose delay is above
    ``max_crawl_delay_seconds`` gets at most ``slow_host_urls``.
    """

    round_urls: int = 100_000
    round_seconds: float = 3600.0
    host_round_urls: int | None = None
    host_total_urls: int = 100_000
    domain_round_urls: int | None = None
    max_domain_hosts: int = 10_000
    min_delay_seconds: float = 5.0
    max_crawl_delay_seconds: float = 120.0
    slow_host_urls: int = 10
    new_share: float = 0.2

    def __post_init__(self) -> None:
        for name in ("round_urls", "host_total_urls", "max_domain_hosts", "slow_host_urls"):
            _require(getattr(self, name) >= 1, name, "1 or more", getattr(self, name))
        for name in ("host_round_urls", "domain_round_urls"):
            value = getattr(self, name)
            _require(value is None or value >= 1, name, "1 or more, or None", value)
        for name in ("min_delay_seconds", "max_crawl_delay_seconds"):
            _require(0 <= getattr(self, name) < math.inf, name, "0 or more", getattr(self, name))
        _require(0 < self.round_seconds < math.inf, "round_seconds", "greater than 0", self.round_seconds)
        _require(0 <= self.new_share <= 1, "new_share", "from 0 to 1", self.new_share)


def _require(holds: bool, name: str, wanted: str, value: object) -> None:
    if not holds:
        raise ValueError(f"{name} must be {wanted}, got {value}")


class RoundTerms(NamedTuple):
    """What one selection depends on beside its rows.

    ``as_of`` is the instant that decides what is due and how long it waited; ``starts_at`` is the real
    start of the round, from which the pauses of hosts are counted. Both UTC epoch seconds.
    """

    number: int
    as_of: float
    starts_at: float
    salt: str


def host_quota(
    window_seconds: float, delay_seconds: float, latency_seconds: float | None, limit: int | None = None
) -> int:
    """Return how many URLs of a host fit politely into the window: at least 1, unless ``limit`` is 0.

    floor(0.9 x window / max(delay, latency)). Since a pause begins when a download ends, a slow host needs
    delay + latency a URL: it gets no more than fills 0.95 of the window. Without a delay the latency bounds
    the quota, and a turn counts as LEAST_TURN_SECONDS at the least. ``limit`` only lowers the result.
    """
    latency = max(latency_seconds or 0.0, LEAST_TURN_SECONDS)
    turns = _USABLE_SHARE * window_seconds / max(delay_seconds, latency)
    fitting = max(1, math.floor(min(turns, _FULL_SHARE * window_seconds / (delay_seconds + latency))))
    return fitting if limit is None else min(fitting, limit)


def planned_delay(host: HostState, rules: DomainRules, policy: FrontierPolicy) -> float:
    """Return the pause in seconds to plan with: what the host last needed, never below either policy."""
    return max(host.delay_seconds or 0.0, rules.min_delay_seconds or 0.0, policy.min_delay_seconds)


def round_quota(host: HostState, rules: DomainRules, policy: FrontierPolicy, starts_at: float) -> int:
    """Return how many URLs of this host the round that starts now may take; 0 when it is not to be asked.

    A host that must be left alone for a part of the round (``not_before_at``) gets what fits the rest.
    """
    ends_at = starts_at + policy.round_seconds
    window_seconds = ends_at - max(starts_at, host.not_before_at or 0.0)
    if window_seconds <= 0:
        return 0
    delay = planned_delay(host, rules, policy)
    limits = [rules.round_urls, policy.host_round_urls if rules.round_urls is None else None]
    if delay > policy.max_crawl_delay_seconds:
        limits.append(policy.slow_host_urls)
    limit = min((n for n in limits if n is not None), default=None)
    return host_quota(window_seconds, delay, usual_latency(host), limit)


class Budgets(NamedTuple):
    """Bounds of each host, in the order of the keys asked for, and of each domain they mention.

    ``domain`` is a host's index into the domain columns. ``*_first`` bound URLs never asked for before.
    """

    domain: Ints
    host_urls: Ints
    host_first: Ints
    paused: Flags
    priority: Floats
    never_asked: Flags
    domain_urls: Ints
    domain_first: Ints
    domain_new_hosts: Ints


def budgets_of(
    keys: Keys, hosts: Mapping[int, HostState], rules_of: RulesOf, policy: FrontierPolicy, terms: RoundTerms
) -> Budgets:
    """Return the bounds of these hosts (KeyError for one that is not in ``hosts``) and of their domains."""
    rows = [hosts[key] for key in keys.tolist()]
    rules = [rules_of(row.host) for row in rows]
    places: dict[str, int] = {}
    domain = _whole(places.setdefault(row.registered_domain, len(places)) for row in rows)
    domain_rules = [rules_of(name) for name in places]
    asked_hosts, asked_urls = _asked(hosts)
    totals = [_given(rule.total_urls, policy.host_total_urls) for rule in rules]
    ends_at = terms.starts_at + policy.round_seconds
    domain_round_urls = _given(policy.domain_round_urls, NO_LIMIT)
    return Budgets(
        domain=domain,
        host_urls=_whole(
            round_quota(row, rule, policy, terms.starts_at) for row, rule in zip(rows, rules, strict=True)
        ),
        host_first=_whole(total - row.fetched_total for row, total in zip(rows, totals, strict=True)),
        paused=np.array([(row.not_before_at or 0.0) >= ends_at for row in rows], dtype=np.bool_),
        priority=np.array([_given(rule.priority, math.nan) for rule in rules], dtype=np.float64),
        never_asked=np.array([row.fetched_total == 0 for row in rows], dtype=np.bool_),
        domain_urls=_whole(_given(rule.round_urls, domain_round_urls) for rule in domain_rules),
        domain_first=_whole(
            _given(rule.total_urls, NO_LIMIT) - asked_urls[name]
            for name, rule in zip(places, domain_rules, strict=True)
        ),
        domain_new_hosts=_whole(policy.max_domain_hosts - asked_hosts[name] for name in places),
    )


def _asked(hosts: Mapping[int, HostState]) -> tuple[Counter[str], Counter[str]]:
    """Return for each registered domain how many of its hosts, and of their URLs, were ever asked for."""
    asked_hosts: Counter[str] = Counter()
    asked_urls: Counter[str] = Counter()
    for row in hosts.values():
        if row.fetched_total > 0:
            asked_hosts[row.registered_domain] += 1
            asked_urls[row.registered_domain] += row.fetched_total
    return asked_hosts, asked_urls


def _given(value: _Given | None, otherwise: _Given) -> _Given:
    return otherwise if value is None else value


def _whole(values: Iterable[int]) -> Ints:
    return np.fromiter(values, dtype=np.int64)
