"""The hosts of a shard: their clocks, their delays, and which of them are done for this round."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import lru_cache

from crawler.outcomes import is_backoff, is_host_failure
from crawler.patterns import excludes_path
from crawler.politeness import backed_off, parse_retry_after, ready_at, recovered
from crawler.urls import UrlKeys, registered_domain, split
from crawler.visit import FetchPolicy, Reply
from schemas.state import DomainRules, HostState

RulesOf = Callable[[str], DomainRules]


class HostBook:
    """Keeps the politeness clock of every host of a shard, from the host table's rows onwards.

    Changes nothing of a row but ip, delay, latency, last fetch, backoff, failures and the robots.txt
    facts: what is counted from outcomes is counted where they are settled. ``asked`` says how many requests a
    host got here. After a takeover no host is asked before ``first_request_after`` plus its delay, in this
    round or in the next: the row of each given host says so.
    """

    def __init__(
        self,
        hosts: Mapping[str, HostState],
        rules_of: RulesOf,
        policy: FetchPolicy,
        keys: UrlKeys,
        first_request_after: float | None = None,
    ) -> None:
        self._states = dict(hosts)
        self._policy = policy
        self._keys = keys
        self._not_asked_since = first_request_after
        self._crawl_delays: dict[str, float] = {}
        self._told = {host: state.delay_seconds or 0.0 for host, state in hosts.items()}
        self._changed: set[str] = set()
        self.asked: Counter[str] = Counter()
        self.rules: RulesOf = rules_of
        self.use_rules(rules_of)
        if first_request_after is not None:
            for host, state in hosts.items():
                self._keep(state._replace(not_before_at=self.ready_at(host)))

    def use_rules(self, rules_of: RulesOf) -> None:
        """Take the operator's rules from here on; they are asked for once a host."""
        self.rules = lru_cache(maxsize=None)(rules_of)

    def state(self, host: str) -> HostState:
        """Return the row of a host, a new one for a host that was never asked."""
        state = self._states.get(host)
        if state is None:
            state = HostState(host, self._keys.host_key(host), registered_domain(host))
            self._states[host] = state
        return state

    def delay_seconds(self, host: str) -> float:
        """Return the pause the host is due after a request, by what is known of it now."""
        return self._policy.politeness.delay_seconds(
            self._crawl_delays.get(host), self.state(host).latency_seconds, self.rules(host).min_delay_seconds
        )

    def owed_seconds(self, host: str) -> float:
        """Return the pause kept before the next request: as promised when the last ended, or longer."""
        return max(self.state(host).delay_seconds or 0.0, self.delay_seconds(host))

    def ready_at(self, host: str) -> float:
        """Return the first instant at which the host may be asked."""
        owed = self.owed_seconds(host)
        since = self._not_asked_since
        return max(ready_at(self.state(host), owed), 0.0 if since is None else since + owed)

    def hear_crawl_delay(self, host: str, seconds: float | None) -> None:
        """Record the Crawl-delay of one of the host's robots.txt; the longest holds for the host."""
        if seconds is not None and seconds > self._crawl_delays.get(host, 0.0):
            self._crawl_delays[host] = seconds

    def untold_delay(self, host: str) -> float | None:
        """Return the host's Crawl-delay when no row says so yet and it is above the operator's; once.

        Whoever would take over must learn of it before the host is asked for a page.
        """
        delay = self._crawl_delays.get(host, 0.0)
        configured = self._policy.politeness.delay_seconds(
            min_delay_seconds=self.rules(host).min_delay_seconds
        )
        if delay <= max(configured, self._told.get(host, 0.0)):
            return None
        self._told[host] = delay
        return delay

    def is_spent(self, host: str) -> bool:
        """Return whether a host with a Crawl-delay above the maximum has had its few requests."""
        politeness = self._policy.politeness
        slow = politeness.is_slow_host(self._crawl_delays.get(host))
        return slow and self.asked[host] >= politeness.slow_host_urls

    def is_retired(self, host: str) -> bool:
        """Return whether the host's last request was one failure in a row too many."""
        return self.state(host).failures >= self._policy.politeness.max_host_failures

    def record(self, host: str, reply: Reply) -> HostState:
        """Return the host's row after a request ended, and keep it."""
        state = self.state(host)._replace(
            ip=reply.ip or self.state(host).ip,
            last_fetch_at=reply.finished_at,
            latency_seconds=max(0.0, reply.finished_at - reply.started_at),
        )
        if not is_host_failure(reply):
            state = recovered(state)
        elif is_backoff(reply):
            retry_after_at = parse_retry_after(reply.retry_after, reply.finished_at)
            state = backed_off(state, self._policy.politeness, reply.finished_at, retry_after_at)
        if is_host_failure(reply):
            state = state._replace(failures=state.failures + 1)
        return self._keep(state)

    def touch(self, host: str, at: float) -> None:
        """Record that a request to the host was cut at this instant."""
        self._keep(self.state(host)._replace(last_fetch_at=at))

    def record_robots(self, host: str, fetched_at: float, status: int | None) -> None:
        """Record when the host's robots.txt was last asked for, and with what status."""
        self._keep(self.state(host)._replace(robots_fetched_at=fetched_at, robots_status=status))

    def rest(self, host: str) -> float:
        """Promise the host its delay from its last request on; return the instant it ends."""
        self._keep(self.state(host)._replace(delay_seconds=self.delay_seconds(host)))
        return self.ready_at(host)

    def changed(self) -> list[HostState]:
        """Return the rows that changed since the last call, by host name."""
        rows = [self._states[host] for host in sorted(self._changed)]
        self._changed.clear()
        for row in rows:
            self._told[row.host] = max(self._told.get(row.host, 0.0), row.delay_seconds or 0.0)
        return rows

    def excludes(self, host: str, url: str) -> bool:
        """Return whether the operator's rules bar this path of the host."""
        paths = self.rules(host).exclude_paths
        return bool(paths) and excludes_path(paths, split(url))

    def _keep(self, state: HostState) -> HostState:
        self._states[state.host] = state
        self._changed.add(state.host)
        return state
