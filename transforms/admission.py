"""Which new URLs of a partition the crawl admits: scope and trap rules, then the totals of hosts and domains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache

from connectors.connect_to import ConnectTo
from crawler.scope import DEFAULT_PORTS, LinkContext, ScopePolicy, admit
from crawler.urls import host_of, port_of, registered_domain, split
from schemas.page import CandidateRow
from schemas.round import RoundSpec
from schemas.state import HostState
from transforms.state_tables import HOSTS, hosts_and_siblings
from transforms.view import RoundView


def scope_policy(spec: RoundSpec, seed_hosts: frozenset[str]) -> ScopePolicy:
    """Return the limits on links that the round's flags and the crawl's scope ask for."""
    flags = spec.flags
    named = {rule.port for rule in ConnectTo.parse(flags.connect_to).rules if rule.port}
    return ScopePolicy(
        max_depth=flags.max_depth,
        max_url_length=flags.max_url_length,
        max_path_segments=flags.max_path_segments,
        scope=spec.scope,
        seed_hosts=seed_hosts,
        ports=DEFAULT_PORTS | named,
    )


class LinkGate:
    """The rules on single URLs, as a round's flags, policy and scope set them."""

    def __init__(self, view: RoundView) -> None:
        self._view = view
        self._policy = scope_policy(view.spec, view.scope_hosts)
        self._with_port = lru_cache(maxsize=64)(self._allowing)

    def _allowing(self, port: int) -> ScopePolicy:
        return replace(self._policy, ports=self._policy.ports | {port})

    def refusal(self, url: str, depth: int, source_url: str | None) -> str | None:
        """Return the reason why a link is not admitted, None when it is.

        A port that its own host's page was served at is allowed: somebody asked for that one before.
        """
        parts = split(url)
        policy = self._policy
        if parts.port not in policy.ports and (
            source_url is None or (host_of(source_url), port_of(source_url)) == (parts.host, parts.port)
        ):
            policy = self._with_port(parts.port)
        rules = self._view.policy.rules_for(parts.host)
        context = LinkContext(url, parts, depth, source_url, rules, policy, self._view.spec.as_of)
        return admit(context).reason


def redirect_gate(view: RoundView) -> Callable[[str, str], bool]:
    """Return whether (target, source) of a redirect may be followed in the same round, as a link would be."""
    gate = LinkGate(view)
    return lambda url, source_url: gate.refusal(url, 0, source_url) is None


class Admission:
    """Admits a partition's new URLs one by one, in the order of their worth, and counts them against totals.

    The totals of a host (``--host_total_urls`` or its policy) and the number of hosts of a registered
    domain bound what a trap or a wildcard domain can put into the frontier. ``entering`` are the host key and
    the URL of what enters the crawl in this round without being asked about: seeds and fetched redirect targets.
    """

    def __init__(
        self,
        view: RoundView,
        partition: int,
        candidates: Iterable[CandidateRow],
        entering: Iterable[tuple[int, str]] = (),
    ) -> None:
        self._view = view
        self._gate = LinkGate(view)
        keys = {row.host_key for row in candidates}
        entries = view.entries(HOSTS.name, partition)
        self._hosts: dict[int, HostState] = hosts_and_siblings(view.storage, entries, keys) if keys else {}
        self._admitted: Counter[int] = Counter()
        self._domain_hosts = Counter(host.registered_domain for host in self._hosts.values())
        self._new_hosts: set[int] = set()
        for host_key, url in entering:
            self._enter(host_key, host_of(url))

    def refusal(self, row: CandidateRow) -> str | None:
        """Return the reason why this URL is not admitted, None when it is; call once a URL."""
        reason = self._gate.refusal(row.url, row.depth, row.source_url)
        return reason or self._over_total(row)

    def _over_total(self, row: CandidateRow) -> str | None:
        host = host_of(row.url)
        rules = self._view.policy.rules_for(host)
        flags = self._view.spec.flags
        known = self._hosts.get(row.host_key)
        total = self._admitted[row.host_key] + (known.urls_known if known else 0)
        if total >= (flags.host_total_urls if rules.total_urls is None else rules.total_urls):
            return "host_total"
        is_new_host = known is None and row.host_key not in self._new_hosts
        if is_new_host and self._domain_hosts[registered_domain(host)] >= flags.max_domain_hosts:
            return "domain_hosts"
        self._enter(row.host_key, host)
        return None

    def _enter(self, host_key: int, host: str) -> None:
        if host_key not in self._hosts and host_key not in self._new_hosts:
            self._domain_hosts[registered_domain(host)] += 1
            self._new_hosts.add(host_key)
        self._admitted[host_key] += 1
