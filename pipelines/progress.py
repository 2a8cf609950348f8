"""A live line for the person who watches a round in a terminal; silent anywhere else."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tqdm import tqdm

from connectors.clock import SystemClock
from connectors.lease import shard_lease
from connectors.rounds import CrawlFolder
from schemas.round import RoundPlan, RoundSpec
from transforms.view import read_plan

EVERY_SECONDS = 0.5
LEASE_SECONDS = 180.0


@contextmanager
def show_progress(folder: CrawlFolder, spec: RoundSpec) -> Iterator[None]:
    """Show URLs done, planned, rate, hosts waiting and time left while the block runs."""
    if not sys.stderr.isatty():
        yield
        return
    done = threading.Event()
    thread = threading.Thread(target=_watch, args=(folder, spec, done), name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def shard_progress(folder: CrawlFolder, plan: RoundPlan) -> list[dict[str, int]]:
    """Return what the holder of each shard's lease said last; shards that nobody took yet are absent."""
    leases = (shard_lease(folder, plan.round, s.shard, SystemClock(), LEASE_SECONDS) for s in plan.shards)
    return [standing.holder.progress for lease in leases if (standing := lease.peek()) is not None]


def _watch(folder: CrawlFolder, spec: RoundSpec, done: threading.Event) -> None:
    plan: RoundPlan | None = None
    with tqdm(desc=f"round {spec.round}", unit="URL", file=sys.stderr, leave=False) as bar:
        while not done.wait(EVERY_SECONDS):
            plan = plan or read_plan(folder, spec.round)
            if plan is None:
                continue
            shards = shard_progress(folder, plan)
            bar.total = plan.planned
            bar.n = sum(shard.get("done", 0) for shard in shards)
            bar.set_postfix(hosts_waiting=sum(shard.get("hosts_waiting", 0) for shard in shards))
            bar.refresh()
