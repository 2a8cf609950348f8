"""A skewed frontier: URLs Pareto over hosts, latencies log-normal; and the least time it can take."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from crawler.session import ShardSession
from crawler.workbench import queue_count
from schemas.state import HostState
from tests.fakes.sessions import policy_of, session_of, state_of


class Skew(NamedTuple):
    """A session over the frontier, the latency of each host, and the lower bound in seconds."""

    session: ShardSession
    latencies: dict[str, float]
    bound_seconds: float
    urls: int


def skewed(urls: int, hosts: int, workers: int, delay: float, seed: int, cap: int | None = None) -> Skew:
    """Return a frontier of about ``urls`` URLs, at most ``cap`` a host, each host's robots.txt on top."""
    rng = np.random.default_rng(seed)
    weight = rng.pareto(1.1, hosts) + 1
    counts = np.clip((weight / weight.sum() * urls).astype(int), 1, cap)
    latency = rng.lognormal(math.log(0.4), 0.7, hosts)
    names = [f"h{number}.example" for number in range(hosts)]
    items = [
        state_of(f"http://{name}/{page}", priority=float(rng.random()))
        for name, count in zip(names, counts, strict=True)
        for page in range(count)
    ]
    known = [
        HostState(name, 1, name, latency_seconds=float(seconds))
        for name, seconds in zip(names, latency, strict=True)
    ]
    session = session_of(*items, hosts=known, policy=policy_of(delay, concurrency=workers), minutes=1e6)
    asks = counts + 1
    asked_seconds, host_seconds = float((asks * latency).sum()), float((asks * (delay + latency)).sum())
    queues = queue_count(hosts, workers, delay, asked_seconds / int(asks.sum()))
    longest = float((asks * (delay + latency) - delay).max())
    bound = max(longest, asked_seconds / workers, host_seconds / queues)
    return Skew(session, dict(zip(names, latency.tolist(), strict=True)), bound, len(items))
