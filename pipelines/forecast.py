"""How long a planned round will take and what it will bring: the real session on a virtual clock."""

from __future__ import annotations

from collections import Counter
from statistics import median
from typing import Any, NamedTuple

from connectors import parts
from connectors.rows import table_to_rows
from crawler.session import ShardSession
from crawler.simulate import simulate, steady
from crawler.urls import host_of
from crawler.visit import FetchPolicy
from schemas.round import RoundPlan
from schemas.state import HostState, UrlState
from transforms.fetcher import exempt_addresses
from transforms.planning import planned_rows
from transforms.view import RoundView, read_policy

SLOWEST = 10
UNKNOWN_LATENCY_SECONDS = 0.5
UNKNOWN_PAGE_BYTES = 100_000.0


class Forecast(NamedTuple):
    """Predicted duration and bytes of a round, and its ten slowest hosts with URLs and seconds."""

    seconds: float
    bytes: float
    slowest_hosts: list[dict[str, Any]]


def forecast(view: RoundView, plan: RoundPlan) -> Forecast:
    """Run every shard's session with the latencies that the host table knows; other hosts get the median."""
    items = _items_by_shard(view, plan)
    hosts = {
        host.host: host
        for due in plan.due
        for host in table_to_rows(parts.read_whole(view.storage, due.hosts_path), HostState)
    }
    known = [host.latency_seconds for host in hosts.values() if host.latency_seconds is not None]
    usual = median(known) if known else UNKNOWN_LATENCY_SECONDS
    now = view.spec.started_at
    finished: dict[str, float] = {}
    for states in items.values():
        finished |= _simulated(view, plan, states, hosts, usual)
    urls = Counter(host_of(state.url) for states in items.values() for state in states)
    slowest = sorted(finished, key=lambda host: (-finished[host], host))[:SLOWEST]
    return Forecast(
        seconds=max(finished.values(), default=now) - now,
        bytes=_bytes(urls, hosts),
        slowest_hosts=[
            {"host": host, "urls": urls[host], "seconds": round(finished[host] - now, 1)} for host in slowest
        ],
    )


def _items_by_shard(view: RoundView, plan: RoundPlan) -> dict[int, list[UrlState]]:
    items: dict[int, list[UrlState]] = {}
    for due in plan.due:
        for state in table_to_rows(planned_rows(view, plan, due), UrlState):
            items.setdefault(plan.shard_of_group[str(state.host_key >> 48)], []).append(state)
    return items


def _simulated(
    view: RoundView, plan: RoundPlan, states: list[UrlState], hosts: dict[str, HostState], usual: float
) -> dict[str, float]:
    flags = view.spec.flags
    now = view.spec.started_at
    session = ShardSession(
        states,
        {host_of(state.url): hosts[host_of(state.url)] for state in states},
        {},
        read_policy(view.storage, plan.policy_path).rules_for,
        FetchPolicy.from_flags(flags, exempt_addresses(flags)),
        now + plan.round_seconds,
        now,
        f"{view.spec.salt}/{plan.round}",
        view.keys,
    )

    def latency_of(host: str) -> float:
        state = hosts.get(host)
        return usual if state is None or state.latency_seconds is None else state.latency_seconds

    return simulate(session, now, flags.fetch_concurrency, steady(latency_of), False).host_finished_at


def _bytes(urls: Counter[str], hosts: dict[str, HostState]) -> float:
    known = [host.bytes_mean for host in hosts.values() if host.bytes_mean is not None]
    usual = median(known) if known else UNKNOWN_PAGE_BYTES
    means = {name: host.bytes_mean for name, host in hosts.items()}
    return sum(count * (means.get(host) or usual) for host, count in urls.items())
