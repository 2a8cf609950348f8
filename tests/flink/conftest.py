"""A real Flink cluster and, where there is a job server for it, crawls on it. Runs only when FLINK is set.

FLINK_VERSION chooses the Flink to install, FLINK_JOB_SERVER_JAR the job server; without a jar Beam resolves its own
artifact for that version. Where that fails the rounds count as not run: the suite says so and does not end as
passed (exit code 5), unless FLINK_NOT_RUN_OK is set.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flink.cluster import Cluster, flink_minor, install, running_cluster

NEEDS_JOB_SERVER = "test_rounds.py"
RESOLVE_SECONDS = 300
RESOLVE = """
import sys
from apache_beam.utils.subprocess_server import JavaJarServer
target = f":runners:flink:{sys.argv[1]}:job-server:shadowJar"
print(JavaJarServer.local_jar(JavaJarServer.path_to_beam_jar(target)))
"""
NOT_RUN = pytest.StashKey[str]()
JAR = pytest.StashKey[str]()


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave this folder out of a run that does not ask for it."""
    return None if os.environ.get("FLINK") else True


def resolved_jar() -> tuple[str | None, str]:
    """Return the job server's jar, or None and why there is none."""
    given = os.environ.get("FLINK_JOB_SERVER_JAR")
    if given:
        return (given, "") if Path(given).is_file() else (None, f"FLINK_JOB_SERVER_JAR={given} is not a file")
    line = [sys.executable, "-c", RESOLVE, flink_minor()]
    try:
        result = subprocess.run(line, capture_output=True, text=True, check=False, timeout=RESOLVE_SECONDS)
    except subprocess.TimeoutExpired:
        return None, f"no answer within {RESOLVE_SECONDS} s"
    if result.returncode == 0:
        return result.stdout.splitlines()[-1], ""
    return None, (result.stderr.splitlines() or ["unknown"])[-1]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take the rounds out when there is no job server to run them through."""
    rounds = [
        item
        for item in items
        if item.path.name == NEEDS_JOB_SERVER and item.path.parent == Path(__file__).parent
    ]
    if not rounds or config.option.collectonly:
        return
    jar, why = resolved_jar()
    if jar is not None:
        config.stash[JAR] = jar
        return
    config.stash[NOT_RUN] = f"rounds on Flink: not run: no Beam job server for Flink {flink_minor()} ({why})"
    config.hook.pytest_deselected(items=rounds)
    items[:] = [item for item in items if item not in rounds]


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """End as not passed when the rounds were not run."""
    if NOT_RUN in session.config.stash and exitstatus == 0 and not os.environ.get("FLINK_NOT_RUN_OK"):
        session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say in one line that the rounds were not run, and why."""
    if NOT_RUN in config.stash:
        terminalreporter.write_line(config.stash[NOT_RUN])


@pytest.fixture(scope="session")
def job_server_jar(request: pytest.FixtureRequest) -> str | None:
    """The job server's jar; None where there is none."""
    return request.config.stash.get(JAR, None)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory, job_server_jar: str | None) -> Iterator[Cluster]:
    """A cluster with two slots."""
    with running_cluster(install(), tmp_path_factory.mktemp("flink"), job_server_jar) as started:
        yield started
