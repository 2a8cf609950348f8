"""The toy crawl on Flink: the same tables as here, a TaskManager that dies, thirty rounds in a row."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from connectors.clock import SystemClock
from tests.fakes.tables import different_rows, normalised, table_of_equality
from tests.flink.cluster import SLOTS, Cluster, flink_minor, wait_until
from tests.portable.crawls import EngineCrawl, engine, run_command
from tests.portable.services import worker_pool
from tests.portable.test_equality import SHARD_LINE
from tests.portable.test_killed_worker import DELAY_SECONDS, ROUND, check_captures, check_log

ROUNDS_IN_A_ROW = 30
SETTLED_AFTER = 10


@contextlib.contextmanager
def flink_crawl(cluster: Cluster, folder: Path, jar: str | None) -> Iterator[EngineCrawl]:
    """A crawl whose rounds run on the cluster, with workers from a pool."""
    with engine("in_memory", folder) as crawl, worker_pool(folder / "pool.log") as pool:
        crawl.pool = pool
        given = os.environ.get("FLINK_JOB_SERVER_JAR")
        crawl.engine_flags = [
            "--runner=FlinkRunner",
            f"--flink_master={cluster.master}",
            f"--parallelism={SLOTS}",
            f"--environment_config={pool.address}",
            f"--flink_job_server_jar={given}" if given else f"--flink_version={flink_minor()}",
        ]
        crawl.inject()
        yield crawl


@pytest.mark.timeout(3600)
def test_three_rounds_make_the_same_tables_as_here(
    cluster: Cluster, job_server_jar: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "flink").mkdir()
    with engine("in_memory", tmp_path / "here") as here:
        here.inject()
        assert here.run("--rounds=3").returncode == 0
    with flink_crawl(cluster, tmp_path / "flink", job_server_jar) as there:
        result = there.run("--rounds=3", timeout=3000)
        assert result.returncode == 0, result.stderr[-3000:]
        lines = SHARD_LINE.findall(there.pool.log() if there.pool else "")
    tables = {"in_memory": normalised(here.folder), "flink": normalised(there.folder)}
    with capsys.disabled():
        print(f"\n{table_of_equality(tables)}")
    for table, rows in tables["in_memory"].items():
        assert different_rows(rows, tables["flink"][table]) == {}, table
    assert {(number, shard) for number, shard, _ in lines} == {(n, s) for n in "123" for s in "01"}


@pytest.mark.timeout(3600)
def test_a_round_goes_on_after_its_task_manager_is_killed(
    cluster: Cluster, job_server_jar: str | None, tmp_path: Path
) -> None:
    with flink_crawl(cluster, tmp_path, job_server_jar) as crawl:
        assert crawl.run("--rounds=2", timeout=3000).returncode == 0
        before = len(crawl.server.log)
        crawl.delay_seconds = DELAY_SECONDS
        crawl.engine_flags.append("--checkpoint_seconds=1")
        process = crawl.start()
        wait_until(lambda: len(crawl.journaled(ROUND)) >= 10, "a checkpoint", 900)
        safe, killed_at = crawl.journaled(ROUND), SystemClock().now()
        cluster.kill_task_manager()
        code = process.wait(900)
        assert code in (0, 1)
        if code == 1:
            result = crawl.run(timeout=3000)
            assert result.returncode == 0, result.stderr[-3000:]
        log = sorted(crawl.server.log[before:], key=lambda access: access.arrived_at)
    check_captures(crawl)
    check_log(log, killed_at, safe)


@pytest.mark.timeout(7200)
def test_thirty_rounds_leave_the_task_manager_as_it_was(
    cluster: Cluster, job_server_jar: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    held = []
    with flink_crawl(cluster, tmp_path, job_server_jar) as crawl:
        for number in range(1, ROUNDS_IN_A_ROW + 1):
            seed = f"http://www.site{number % 6:02d}.example/missing-{number}"
            run_command("inject", f"--crawl={crawl.folder}", seed).check_returncode()
            result = crawl.run(timeout=1200)
            assert result.returncode == 0, result.stderr[-3000:]
            held.append(cluster.memory())
            with capsys.disabled():
                print(f"\nround {number}: {held[-1]}")
    settled, last = held[SETTLED_AFTER - 1 :], held[-1]
    assert last["classes"] <= 1.1 * settled[0]["classes"]
    assert last["metaspace"] <= 1.1 * settled[0]["metaspace"]
    assert min(state["direct"] for state in settled[-5:]) <= 1.25 * max(
        state["direct"] for state in settled[:5]
    )
