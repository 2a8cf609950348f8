"""A worker process is killed while it downloads: the round fails or retries, and a rerun completes it."""

from __future__ import annotations

import os
import signal
import subprocess
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import duckdb
import pytest

from connectors.clock import SystemClock
from tests.fakes.toy_server import Access
from tests.portable.crawls import EngineCrawl, engine
from tests.portable.services import is_alive

DELAY_SECONDS = 0.7
ROUND = 3


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ["portable_pool", "prism_pool"])
def test_a_killed_worker_costs_one_rerun_and_no_host_more(name: str, tmp_path: Path, prism: str) -> None:
    with engine(name, tmp_path) as crawl:
        crawl.inject()
        result = crawl.run("--rounds=2")
        assert result.returncode == 0, result.stderr[-3000:]
        before = len(crawl.server.log)
        crawl.delay_seconds = DELAY_SECONDS
        crawl.engine_flags.append("--checkpoint_seconds=1")
        process = crawl.start()
        killed_at, safe = kill_the_busiest_worker(crawl, process)
        code = process.wait(300)
        stderr = (tmp_path / "round.err").read_text()
        assert code in (0, 1), stderr
        if code == 1:
            assert "to resume: python -m pipelines.round" in stderr.splitlines()[-1], stderr
            result = crawl.run()
            assert result.returncode == 0, result.stderr[-3000:]
        log = sorted(crawl.server.log[before:], key=lambda access: access.arrived_at)
    check_captures(crawl)
    check_log(log, killed_at, safe)
    assert crawl.pool is not None and crawl.pool.workers() == []


def kill_the_busiest_worker(crawl: EngineCrawl, process: subprocess.Popen[str]) -> tuple[float, set[str]]:
    """Kill the worker that has most left to do, once something is safe; return when, and what was safe."""
    clock = SystemClock()
    end = clock.monotonic() + 240
    while clock.monotonic() < end and process.poll() is None:
        holders = crawl.holders(ROUND)
        safe = crawl.journaled(ROUND)
        if holders and len(safe) >= 10:
            busiest = max(holders.values(), key=lambda holder: holder.progress.get("planned", 0))
            assert busiest.process != process.pid and is_alive(busiest.process)
            os.kill(busiest.process, signal.SIGKILL)
            return clock.now(), safe
        clock.wait(0.05)
    raise AssertionError(f"no checkpoint to kill after; exit code {process.poll()}")


def check_captures(crawl: EngineCrawl) -> None:
    """Every planned URL of the round has one row, and every stored capture is named once."""
    captures = f"read_parquet('{crawl.folder}/tables/captures/round={ROUND:06d}/*.parquet')"
    [(rows, urls)] = duckdb.sql(
        f"SELECT count(*), count(DISTINCT url) FROM {captures} WHERE kind = 'planned'"
    ).fetchall()
    assert rows == urls > 50
    [(stored, named)] = duckdb.sql(
        f"SELECT count(*), count(DISTINCT warc_filename || warc_record_offset) FROM {captures} "
        "WHERE warc_filename IS NOT NULL"
    ).fetchall()
    assert stored == named > 50


def check_log(log: list[Access], killed_at: float, safe: set[str]) -> None:
    """No host was asked too soon, nothing safe was asked again, nothing was asked a third time."""
    by_host = defaultdict(list)
    for access in log:
        by_host[access.host].append(access)
    for accesses in by_host.values():
        for earlier, later in pairwise(accesses):
            if earlier.path != "/robots.txt":
                assert later.arrived_at - earlier.ended_at >= DELAY_SECONDS - 0.005, (earlier, later)
    counts: dict[str, int] = defaultdict(int)
    for access in log:
        if access.path != "/robots.txt":
            counts[f"http://{access.host}{access.path}"] += 1
    asked_after = {f"http://{access.host}{access.path}" for access in log if access.arrived_at > killed_at}
    assert safe & asked_after == set()
    assert max(counts.values()) <= 2
    assert asked_after, "the worker was killed after the last request"
