"""How long a planned round will take and what it will bring: the real session on a virtual clock."""

from __future__ import annotations

from collections import Counter
from statistics import median
from typing import Any, NamedTuple

from crawler.politeness import usual_latency
from crawler.redirects import open_chains
from crawler.session import ShardSession
from crawler.simulate import Simulation, simulate, steady
from crawler.visit import ROBOTS, FetchPolicy
from schemas.round import ListPart, RoundPlan
from schemas.state import HostState
from transforms import planning
from transforms.fetcher import exempt_addresses
from transforms.shard_start import ShardStart, start_of
from transforms.view import RoundView

SLOWEST = 10
UNKNOWN_LATENCY_SECONDS = 0.5
UNKNOWN_PAGE_BYTES = 100_000.0


class Forecast(NamedTuple):
    """Predicted duration and bytes of what a round has still to fetch, and its ten slowest hosts.

    ``urls_done`` are the planned URLs that its journal already holds.
    """

    seconds: float
    bytes: float
    slowest_hosts: list[dict[str, Any]]
    urls_done: int = 0


def forecast(view: RoundView, plan: RoundPlan) -> Forecast:
    """Return what it takes to fetch what is left of the plan, from now on, with a worker for each shard.

    Every shard's session runs as the worker would start it, with its journal and the robots.txt that is known,
    and with the latencies that the host table knows; other hosts get the median.
    """
    starts = _starts(view, plan)
    hosts = {name: host for start in starts for name, host in start.hosts.items()}
    known = [latency for host in hosts.values() if (latency := usual_latency(host)) is not None]
    usual = median(known) if known else UNKNOWN_LATENCY_SECONDS
    now = view.spec.started_at
    finished: dict[str, float] = {}
    pages: Counter[str] = Counter()
    done = 0
    for start in starts:
        fetched = {row.url for row in start.rows if row.kind != ROBOTS}
        done += len(fetched & {state.url for state in start.items})
        expected = _simulated(view, start, fetched, usual)
        finished |= expected.host_finished_at
        pages += expected.pages
    slowest = sorted(finished, key=lambda host: (-finished[host], host))[:SLOWEST]
    return Forecast(
        seconds=max(finished.values(), default=now) - now,
        bytes=_bytes(pages, hosts),
        slowest_hosts=[
            {"host": host, "urls": pages[host], "seconds": round(finished[host] - now, 1)} for host in slowest
        ],
        urls_done=done,
    )


def _starts(view: RoundView, plan: RoundPlan) -> list[ShardStart]:
    """Return where each shard begins, in the order of their numbers; writes what a plan deals beside the crawl."""
    given: dict[int, list[ListPart]] = {}
    for due in plan.due:
        for part in planning.deal(view, due):
            given.setdefault(part.shard, []).append(part)
    return [start_of(view, given[shard], view.journal(shard).entries()) for shard in sorted(given)]


def _simulated(view: RoundView, start: ShardStart, fetched: set[str], usual: float) -> Simulation:
    """Return what the rest of a shard comes to on the virtual clock."""
    flags = view.spec.flags
    now = view.spec.started_at
    session = ShardSession(
        start.items,
        start.hosts,
        start.robots,
        view.policy.rules_for,
        FetchPolicy.from_flags(flags, exempt_addresses(flags)),
        view.spec.deadline_at,
        now,
        f"{view.spec.salt}/{view.spec.round}",
        view.keys,
        done=fetched,
        chains=open_chains(start.rows),
    )

    def latency_of(host: str) -> float:
        latency = usual_latency(start.hosts[host]) if host in start.hosts else None
        return usual if latency is None else latency

    return simulate(session, now, flags.fetch_concurrency, steady(latency_of), False)


def _bytes(pages: Counter[str], hosts: dict[str, HostState]) -> float:
    known = [host.bytes_mean for host in hosts.values() if host.bytes_mean is not None]
    usual = median(known) if known else UNKNOWN_PAGE_BYTES
    means = {name: host.bytes_mean for name, host in hosts.items()}
    return sum(count * (means.get(host) or usual) for host, count in pages.items())
