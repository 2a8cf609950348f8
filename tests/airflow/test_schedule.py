"""A crawl under a real scheduler: scheduled and manual runs, a killed round, a held lock, a damaged file."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from connectors.clock import SystemClock
from connectors.journal import Journal
from connectors.lease import crawl_lease
from connectors.parts import read_whole
from connectors.rounds import CrawlFolder
from pipelines import audit
from runners import engines
from runners.options import parse_instant
from runners.round_options import parse_round
from tests.airflow.conftest import ROOT, Airflow, wait_until
from transforms.view import read_plan

KILLED_ROUND_URLS = 40
ARGUMENTS = """
import json, sys
import roundcrawl_dags as dags
(settings,) = json.load(open(sys.argv[1]))
dag = dags.crawl_dag(settings)
task = dag.get_task("round")
print(json.dumps({engine: [*task.arguments, *more] for engine, more in task.engine_arguments.items()}))
"""


@pytest.mark.timeout(120)
def test_the_example_gives_each_engine_a_command_line_that_the_command_accepts(
    installed: Path, tmp_path: Path
) -> None:
    example = ROOT / "runners/airflow/dags.example.json"
    done = subprocess.run(
        [installed, "-c", ARGUMENTS, example],
        env={**os.environ, "PYTHONPATH": str(ROOT / "runners/airflow"), "AIRFLOW_HOME": str(tmp_path)},
        check=True,
        capture_output=True,
        text=True,
    )
    lines = json.loads(done.stdout.splitlines()[-1])
    assert set(lines) == {"local", "flink", "dataflow"}
    for engine, line in lines.items():
        rendered = [
            "--as_of=2026-01-01T00:00:00+00:00" if argument.startswith("--as_of=") else argument
            for argument in line
        ]
        command = parse_round(rendered)
        options = engines.pipeline_options(command.job).get_all_options()
        assert options["runner"].lower().startswith("fnapi" if engine == "local" else engine)
        assert not any("data_interval" in argument for argument in line if "run_after" not in argument)


@pytest.mark.timeout(3600)
def test_rounds_are_scheduled_killed_retried_and_published(airflow: Airflow) -> None:
    folder = CrawlFolder.at(str(airflow.crawl))
    wait_until("a first scheduled run", lambda: airflow.runs("crawl_toy", "success"), 2)
    airflow.command("dags", "trigger", "crawl_toy", "--run-id", "by-hand")
    journalled = kill_the_large_round(airflow, folder)
    asked_before = len(airflow.server.log)
    wait_until("the manual run", lambda: ("by-hand", "manual") in airflow.runs("crawl_toy", "success"), 2)
    wait_until("two scheduled runs", lambda: count_scheduled(airflow) >= 2, 2)
    wait_until("the killed round's commit", lambda: folder.newest_round() >= 3)
    asked_after = {f"http://{a.host}{a.path}" for a in airflow.server.log[asked_before:]}
    assert asked_after & journalled == set()
    retried = airflow.rows(
        "SELECT run_id, try_number FROM task_instance WHERE dag_id = 'crawl_toy' AND task_id = 'round' "
        "AND state = 'success' AND try_number > 1"
    )
    assert [tries for _, tries in retried] == [2]
    assert audit.main([f"--crawl={airflow.crawl}"]) == 0
    assert_runs_are_rounds(airflow, folder)
    wait_until("the downstream DAG", lambda: airflow.runs("index_toy", "success"), 2)
    assert f"file://{airflow.crawl}/tables" in airflow.index_log.read_text()
    assert airflow.alerts == ""
    print(
        f"{folder.newest_round()} rounds, {Counter(kind for _, kind in airflow.runs('crawl_toy', 'success'))}"
    )


def count_scheduled(airflow: Airflow) -> int:
    return sum(kind == "scheduled" for _, kind in airflow.runs("crawl_toy", "success"))


def kill_the_large_round(airflow: Airflow, folder: CrawlFolder) -> set[str]:
    """Kill the process of the round in hand when part of it is journalled; return the URLs of that part."""
    found: list[int] = []

    def is_midway() -> bool:
        number = folder.unfinished_round()
        plan = read_plan(folder, number) if number is not None else None
        if (
            plan is not None
            and plan.planned > KILLED_ROUND_URLS
            and Journal(folder, plan.round, 0).segments()
        ):
            found.append(plan.round)
        return bool(found)

    wait_until("a large round midway", is_midway, 0.05)
    standing = crawl_lease(folder, SystemClock(), 180).peek()
    assert standing is not None and standing.live
    process = standing.holder.process
    line = Path(f"/proc/{process}/cmdline").read_text().split("\0")
    assert "pipelines.round" in line and f"--crawl={airflow.crawl}" in line
    os.kill(process, signal.SIGKILL)
    assert folder.newest_round() == found[0] - 1
    entries = Journal(folder, found[0], 0).entries()
    assert not entries[-1].is_last
    return {
        url
        for entry in entries
        for url in read_whole(folder.storage, entry.outcomes_path, ["url"]).column("url").to_pylist()
    }


def assert_runs_are_rounds(airflow: Airflow, folder: CrawlFolder) -> None:
    """Each committed round bears its DAG run's id, and was planned for that run's instant."""
    after = {
        f"crawl_toy/{run_id}": parse_instant(f"{run_after.replace(' ', 'T')}+00:00")
        for run_id, run_after in airflow.rows(
            "SELECT run_id, run_after FROM dag_run WHERE dag_id = 'crawl_toy'"
        )
    }
    for number in range(1, folder.newest_round() + 1):
        manifest = folder.read_manifest(number)
        assert parse_instant(manifest.as_of) == pytest.approx(after[manifest.run_id], abs=0.001)


@pytest.mark.timeout(3600)
def test_a_run_that_meets_a_live_round_is_skipped(airflow: Airflow) -> None:
    lease = crawl_lease(CrawlFolder.at(str(airflow.crawl)), SystemClock(), 180)
    wait_until("the crawl to be free", lambda: taken(lease), 0.2)
    try:
        airflow.command("dags", "trigger", "crawl_toy", "--run-id", "locked-out")
        wait_until("the skip", lambda: airflow.tasks("locked-out").get("round", ("", 0))[0] == "skipped", 2)
        wait_until("its end", lambda: "locked-out" in dict(airflow.runs("crawl_toy", "success")), 2)
    finally:
        lease.release()
    states = airflow.tasks("locked-out")
    assert [states[task] for task in ("round", "audit", "report")] == [("skipped", 1)] + [("skipped", 0)] * 2


def taken(lease: object) -> bool:
    from connectors.faults import Locked

    with contextlib.suppress(Locked):
        lease.acquire()  # type: ignore[attr-defined]
        return True
    return False


@pytest.mark.timeout(3600)
def test_a_damaged_crawl_raises_an_alert(airflow: Airflow) -> None:
    indexed = len(airflow.runs("index_toy", "success"))
    table = next(Path(airflow.crawl).glob("tables/pages/round=000003/*.parquet"))
    table.write_bytes(table.read_bytes()[:-1] + b"?")
    airflow.command("dags", "trigger", "crawl_toy", "--run-id", "damaged")
    wait_until("the fault", lambda: airflow.tasks("damaged").get("audit", ("", 0))[0] == "failed", 2)
    wait_until("the alert", lambda: "crawl_toy.audit failed in damaged: exit code 1" in airflow.alerts)
    assert airflow.tasks("damaged")["audit"] == ("failed", 1)
    assert len(airflow.runs("index_toy", "success")) <= indexed + 1
