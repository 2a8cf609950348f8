"""Airflow 3 in an environment of its own: api-server, scheduler and dag-processor, started and ended here."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from connectors.clock import SystemClock
from pipelines import inject
from tests.fakes.emulators import free_port
from tests.fakes.toy_server import ToyServer, serve
from tests.fakes.toy_web import ToyWeb

ROOT = Path(__file__).parents[2]
ENVIRONMENT = ROOT / ".cache" / "airflow"
PACKAGES = ("apache-airflow==3.3.2", "apache-airflow-providers-standard==1.21.0")
PATIENCE_SECONDS = 1500.0
ALERT = '#!/bin/sh\necho "$1" >> "{log}"\n'


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave this folder out unless the command line names it."""
    return None if any("tests/airflow" in str(arg) for arg in config.invocation_params.args) else True


def wait_until(what: str, holds: Callable[[], object], every_seconds: float = 0.5) -> None:
    """Return when ``holds`` does; a busy machine gets a lot of patience."""
    clock = SystemClock()
    end = clock.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert clock.monotonic() < end, f"not seen in {PATIENCE_SECONDS:.0f} s: {what}"
        clock.wait(every_seconds)


@dataclass
class Airflow:
    """A running Airflow, the crawl that its DAG works on, and the web behind it."""

    home: Path
    crawl: Path
    web: ToyWeb
    server: ToyServer
    environment: dict[str, str]
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def index_log(self) -> Path:
        """Where the downstream DAG writes."""
        return self.home / "index.log"

    @property
    def alerts(self) -> str:
        """What the alert program was told so far."""
        log = self.home / "alerts.log"
        return log.read_text() if log.exists() else ""

    def command(self, *arguments: str) -> None:
        """Run the airflow command line."""
        subprocess.run(
            [ENVIRONMENT / "bin/airflow", *arguments],
            env=self.environment,
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=600,
        )

    def start(self, name: str, *arguments: str) -> None:
        """Start one of Airflow's services."""
        log = (self.home / f"{name}.log").open("wb")
        command = [ENVIRONMENT / "bin/airflow", name, *arguments]
        self.processes.append(
            subprocess.Popen(
                command, env=self.environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        )

    def is_listening(self) -> bool:
        """Return whether the api-server takes connections."""
        port = int(self.environment["AIRFLOW__API__PORT"])
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
            return True
        return False

    def rows(self, query: str, *values: str) -> list[tuple]:
        """Ask Airflow's database."""
        with contextlib.closing(
            sqlite3.connect(f"file:{self.home}/airflow.db?mode=ro", uri=True, timeout=60)
        ) as db:
            return db.execute(query, values).fetchall()

    def runs(self, dag_id: str, state: str) -> list[tuple[str, str]]:
        """Return (run id, kind) of the runs in a state, oldest first."""
        query = "SELECT run_id, run_type FROM dag_run WHERE dag_id = ? AND state = ? ORDER BY id"
        return self.rows(query, dag_id, state)

    def tasks(self, run_id: str) -> dict[str, tuple[str, int]]:
        """Return (state, tries) of each task of a run of the crawl."""
        query = (
            "SELECT task_id, state, try_number FROM task_instance WHERE dag_id = 'crawl_toy' AND run_id = ?"
        )
        return {task: (state, tries) for task, state, tries in self.rows(query, run_id)}

    def stop(self) -> None:
        """End the services, youngest first."""
        for process in reversed(self.processes):
            process.terminate()
        for process in reversed(self.processes):
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(30)


@pytest.fixture(scope="session")
def installed() -> Path:
    """The environment's Python, with Airflow installed."""
    python = ENVIRONMENT / "bin/python"
    marker = ENVIRONMENT / "installed"
    if not marker.exists() or marker.read_text() != "\n".join(PACKAGES):
        subprocess.run([sys.executable, "-m", "venv", ENVIRONMENT], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
        marker.write_text("\n".join(PACKAGES))
    return python


def settings(home: Path, crawl: Path, port: int) -> list[dict[str, object]]:
    """Return the settings file of the toy crawl's DAG."""
    alert = home / "alert"
    alert.write_text(ALERT.format(log=home / "alerts.log"))
    alert.chmod(0o755)
    flags = [
        f"--connect_to=::127.0.0.1:{port}",
        "--min_delay_seconds=1",
        "--latency_factor=0",
        "--round_minutes=5",
        "--max_body_bytes=250000",
        "--checkpoint_seconds=1",
    ]
    return [
        {
            "dag_id": "crawl_toy",
            "crawl": str(crawl),
            "python": sys.executable,
            "schedule": "* * * * *",
            "flags": flags,
            "retries": 3,
            "retry_delay_seconds": 1,
            "alert_command": [str(alert)],
        }
    ]


def environment_of(home: Path, crawl: Path) -> dict[str, str]:
    """Return the environment in which Airflow's processes agree with each other."""
    port = free_port()
    return {
        **os.environ,
        "AIRFLOW_HOME": str(home),
        "PYTHONPATH": str(ROOT),
        "ROUNDCRAWL_DAGS": str(home / "dags.json"),
        "INDEX_LOG": str(home / "index.log"),
        "TABLES_ASSET": f"file://{crawl}/tables",
        "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__PARALLELISM": "3",
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db",
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__API__SECRET_KEY": secrets.token_hex(16),
        "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(32),
        "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(free_port()),
        # A busy machine: nothing is given up for lost while it is only slow.
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "900",
        "AIRFLOW__SCHEDULER__TASK_QUEUED_TIMEOUT": "900",
        "AIRFLOW__DAG_PROCESSOR__DAG_FILE_PROCESSOR_TIMEOUT": "300",
        "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": "240",
    }


@pytest.fixture(scope="session")
def airflow(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    """Airflow with the toy crawl's DAG, scheduled every minute, and a DAG downstream of it."""
    home = tmp_path_factory.mktemp("airflow")
    crawl = home / "crawl"
    (home / "dags").mkdir()
    for source in (ROOT / "runners/airflow/roundcrawl_dags.py", ROOT / "tests/airflow/dags/index_toy.py"):
        shutil.copy(source, home / "dags")
    web = ToyWeb(sites=6, pages=6, robots_delay_seconds=1.0)
    with serve(web) as server:
        (home / "dags.json").write_text(json.dumps(settings(home, crawl, server.port)))
        assert inject.main([f"--crawl={crawl}", "--salt=toy", *web.seeds()]) == 0
        running = Airflow(home, crawl, web, server, environment_of(home, crawl))
        running.command("db", "migrate")
        try:
            running.start("api-server")
            # A task that starts before the server listens has failed.
            wait_until("the api-server", running.is_listening)
            running.start("scheduler")
            running.start("dag-processor")
            yield running
        finally:
            running.stop()
