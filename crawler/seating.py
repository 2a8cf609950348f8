"""Who waits where when a shard begins: priority levels, big hosts first, clocks restored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from crawler.hostbook import HostBook
from crawler.politeness import usual_latency
from crawler.urls import host_of
from crawler.visit import HOP, PLANNED, FetchPolicy, Visit
from crawler.workbench import Workbench, queue_count
from schemas.state import UrlState

LEVELS = 4


class Seating(NamedTuple):
    """A filled workbench; ``taken`` are the URLs the round has claimed, ``done`` planned ones with a row."""

    bench: Workbench[Visit]
    hosts: list[str]
    taken: set[str]
    planned: int
    done: int


def level_of(priority: float) -> int:
    """Return the front queue of a priority from 0 to 1; 0 is the highest."""
    return min(LEVELS - 1, max(0, int((1.0 - priority) * LEVELS)))


def seat(
    items: Iterable[UrlState],
    book: HostBook,
    policy: FetchPolicy,
    seed: str,
    done: set[str],
    chains: Mapping[str, tuple[str, ...]],
) -> Seating:
    """Return a workbench with every item that is still to be asked.

    Two aims meet in the front bank. Priority decides the level, and with it how soon a host is likely to get
    a queue. Within a level hosts stand by load, the longest first, as longest-first packing wants for a
    short tail; and a host so long that it alone may decide when the shard ends gets all its items into
    the highest level, whatever their priority. A URL that is planned twice is taken once.
    """
    waiting: dict[str, list[Visit]] = {}
    taken = set(done)
    planned: set[str] = set()
    for state in items:
        if state.url in planned:
            continue
        planned.add(state.url)
        visit = _visit(state, done, chains)
        if visit is not None:
            taken.add(visit.url)
            waiting.setdefault(visit.host, []).append(visit)
    finished = len(planned & done)
    return _fill(waiting, book, policy, seed)._replace(taken=taken, planned=len(planned), done=finished)


def _visit(state: UrlState, done: set[str], chains: Mapping[str, tuple[str, ...]]) -> Visit | None:
    if state.url not in done:
        return Visit(PLANNED, state.url, host_of(state.url), state)
    chain = chains.get(state.url)
    return Visit(HOP, chain[-1], host_of(chain[-1]), state, chain[:-1]) if chain else None


def _fill(waiting: dict[str, list[Visit]], book: HostBook, policy: FetchPolicy, seed: str) -> Seating:
    latency, load = {}, {}
    for host, visits in waiting.items():
        latency[host] = usual_latency(book.state(host)) or policy.latency_guess_seconds
        load[host] = len(visits) * (book.owed_seconds(host) + latency[host])
    asks = sum(map(len, waiting.values()))
    seconds_asked = sum(len(waiting[host]) * latency[host] for host in waiting)
    rest_seconds = (sum(load.values()) - seconds_asked) / max(asks, 1)
    queues = queue_count(len(waiting), policy.concurrency, rest_seconds, seconds_asked / max(asks, 1))
    bench: Workbench[Visit] = Workbench(
        queues, levels=LEVELS, seed=seed, ip_delay_seconds=policy.politeness.min_ip_delay_seconds
    )
    bound = max(
        max(load.values(), default=0.0), seconds_asked / policy.concurrency, sum(load.values()) / queues
    )
    order = sorted(waiting, key=lambda host: (-load[host], host))
    for host in order:
        ip = book.state(host).ip
        if ip is not None and ip not in policy.exempt_addresses:
            bench.locate(host, ip)
        bench.rest(host, book.ready_at(host))
        decides = load[host] * 2 >= bound
        for visit in waiting[host]:
            priority = visit.state.priority if visit.state is not None else 0.0
            bench.add(host, visit, 0 if decides else level_of(priority))
    return Seating(bench, order, set(), 0, 0)
