"""Rows a second that selection ranks and bounds, and the balance of the shards it is packed into."""

from __future__ import annotations

import time

import numpy as np

from crawler.budgets import FrontierPolicy, RoundTerms
from crawler.frontier import cut_to, select
from crawler.packing import pack
from crawler.ranks import Candidates, threshold_for
from schemas.state import DomainRules, HostState

RULES = DomainRules()
TERMS = RoundTerms(number=10, as_of=1e9, starts_at=1e9, salt="bench")


def due_urls(rows: int, hosts: int) -> tuple[Candidates, dict[int, HostState]]:
    """Return due URLs spread over hosts with a heavy tail (Pareto), three hosts to a domain."""
    rng = np.random.default_rng(1)
    host_keys = rng.integers(0, 2**64, hosts, dtype=np.uint64)
    own = host_keys[np.minimum((rng.pareto(1.0, rows) * 10).astype(int), hosts - 1)]
    candidates = Candidates(
        url_key=rng.integers(0, 2**64, rows, dtype=np.uint64),
        host_key=own,
        priority=np.full(rows, 0.5),
        depth=rng.integers(0, 10, rows),
        inlink_domains=rng.integers(0, 5, rows),
        visits=rng.integers(0, 3, rows),
        changes=np.zeros(rows, dtype=np.int64),
        next_fetch_at=1e9 - rng.random(rows) * 1e7,
        discovered_round=rng.integers(0, 10, rows),
        was_asked=rng.random(rows) < 0.5,
    )
    states = {key: HostState(f"h{n}", key, f"d{n // 3}") for n, key in enumerate(host_keys.tolist())}
    return candidates, states


def run(rows: int = 1_000_000, hosts: int = 50_000, round_urls: int = 100_000) -> dict[str, float]:
    """Return the CPU cost of selecting and cutting, and of packing a million hosts with addresses."""
    candidates, states = due_urls(rows, hosts)
    began = time.process_time()
    selection = select(candidates, states, lambda name: RULES, FrontierPolicy(), TERMS)
    selected = selection.selected
    cut = threshold_for(selection.rank[selected], candidates.url_key[selected], round_urls)
    final = cut_to(selection, candidates.url_key, cut)
    took = time.process_time() - began
    rng = np.random.default_rng(2)
    keys = rng.integers(0, 2**64, rows, dtype=np.uint64)
    loads = np.minimum(rng.pareto(1.1, rows) + 1, 648) * 5.2
    addresses = [f"192.0.2.{number}" for number in rng.integers(0, rows // 10, rows)]
    began = time.process_time()
    packing = pack(keys, loads, 64, addresses)
    return {
        "rows_per_second": round(rows / took),
        "selected": int(final.selected.sum()),
        "hosts_packed_per_second": round(rows / (time.process_time() - began)),
        "max_load_over_mean": round(float(packing.loads.max() / packing.loads.mean()), 5),
    }


if __name__ == "__main__":
    print(run())
