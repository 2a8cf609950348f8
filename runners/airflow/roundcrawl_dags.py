"""A DAG for Airflow 3 for each crawl in the JSON file that ROUNDCRAWL_DAGS names: plan, round, audit, report.

Put this file into a DAG folder. It imports nothing of the crawler: the commands run with the Python that the JSON file
names. docs/airflow.md says what each setting does.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, Asset, BaseOperator, Context, Param
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

CONFIG = "ROUNDCRAWL_DAGS"
USAGE, LOCKED = 2, 3
STOP_SECONDS = 60.0
ENGINES = {
    "local": ("--runner=FnApiRunner",),
    "flink": ("--runner=FlinkRunner",),
    "dataflow": ("--runner=DataflowRunner",),
}
# What is due at the run's own instant, so that a late or repeated run plans the same. A run that was started by
# hand has no data interval.
AS_OF = "{{ (dag_run.data_interval_end or dag_run.run_after).isoformat() }}"
RUN_ID = "{{ dag_run.dag_id }}/{{ dag_run.run_id }}"


class CrawlCommand(BaseOperator):
    """Runs one command of the crawler and makes a task state of its exit code.

    0: success. 2 (the command line cannot work): failed, no retry. 3 (another live round holds the crawl), or a round
    with nothing due: skipped, and so are the tasks after it. Anything else: failed, with the retries that the
    task has. ``engine_arguments`` are added for the engine that the run's parameter names. A task that is
    ended stops its round cleanly: what was fetched is kept.
    """

    template_fields: Sequence[str] = ("arguments",)

    def __init__(
        self,
        *,
        command: Sequence[str],
        arguments: Sequence[str],
        engine_arguments: dict[str, Sequence[str]] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.command = list(command)
        self.arguments = list(arguments)
        self.engine_arguments = engine_arguments or {}
        self._process: subprocess.Popen[str] | None = None

    def execute(self, context: Context) -> str:
        """Run the command; return the last line that it printed."""
        engine = self.engine_arguments.get(context["params"].get("engine"), ())
        line = [*self.command, *self.arguments, *engine]
        self.log.info("%s", " ".join(line))
        said = self._run(line)
        if said.code == LOCKED:
            raise AirflowSkipException("another live round holds this crawl")
        if said.code == USAGE:
            raise AirflowFailException(said.last)
        if said.code:
            raise AirflowException(f"exit code {said.code}: {said.last}")
        if said.last.startswith("next due:"):
            raise AirflowSkipException(f"nothing is due; {said.last}")
        return said.last

    def on_kill(self) -> None:
        """Stop the command as Ctrl-C would, and end it if it does not stop."""
        process = self._process
        if process is None or process.poll() is not None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()

    def _run(self, line: list[str]) -> _Said:
        with subprocess.Popen(
            line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
        ) as process:
            self._process = process
            last = ""
            for text in process.stdout or ():
                last = text.strip() or last
                self.log.info("%s", text.rstrip())
            return _Said(process.wait(), last)


class _Said:
    """How a command ended, and its last line."""

    def __init__(self, code: int, last: str) -> None:
        self.code, self.last = code, last


def crawl_dag(settings: dict[str, Any]) -> DAG:
    """Return the DAG of one crawl: plan, round, audit (which publishes the tables as an asset), report."""
    python, crawl = settings.get("python", "python3"), settings["crawl"]
    at = [f"--crawl={crawl}"]
    retries = settings.get("retries", 5)
    pause = timedelta(seconds=settings.get("retry_delay_seconds", 60))
    with DAG(
        settings["dag_id"],
        schedule=settings.get("schedule"),
        start_date=datetime.fromisoformat(settings.get("start_date", "2026-01-01T00:00:00+00:00")),
        catchup=False,
        # Rounds of a crawl follow one another; a second one would be skipped by the crawl's lock.
        max_active_runs=1,
        params={"engine": Param(settings.get("engine", "local"), enum=sorted(ENGINES))},
        default_args={"on_failure_callback": alert(settings.get("alert_command"))},
        tags=["roundcrawl"],
    ) as dag:
        flags = settings.get("flags", [])
        plan = _task(python, "plan", [*at, f"--as_of={AS_OF}", *flags], retries=retries, retry_delay=pause)
        crawl_round = _task(
            python,
            "round",
            [*at, f"--as_of={AS_OF}", f"--run_id={RUN_ID}", *flags],
            engine_arguments=engine_arguments(settings),
            retries=retries,
            retry_delay=pause,
        )
        # A fault in the crawl's own files does not go away by looking again.
        audit = _task(python, "audit", at, retries=0, outlets=[tables_asset(crawl)])
        report = _task(python, "report", at, retries=1, retry_delay=pause)
        plan >> crawl_round >> audit >> report
    return dag


def _task(python: str, command: str, arguments: list[str], **settings: Any) -> CrawlCommand:
    line = [python, "-m", f"pipelines.{command}"]
    return CrawlCommand(task_id=command, command=line, arguments=arguments, **settings)


def engine_arguments(settings: dict[str, Any]) -> dict[str, Sequence[str]]:
    """Return the arguments of each engine: its name, and what the settings add for it."""
    more = settings.get("engines", {})
    return {name: (*arguments, *more.get(name, ())) for name, arguments in ENGINES.items()}


def tables_asset(crawl: str) -> Asset:
    """Return the asset that stands for a crawl's tables: schedule an indexing DAG on it."""
    root = crawl if "://" in crawl else f"file://{Path(crawl).absolute()}"
    return Asset(f"{root.rstrip('/')}/tables")


def alert(command: Sequence[str] | None) -> Any:
    """Return a callback that hands a failed task to the operator's own program, as its last argument."""

    def tell(context: Context) -> None:
        task = context["task_instance"]
        text = f"{task.dag_id}.{task.task_id} failed in {task.run_id}: {context.get('exception')}"
        if command:
            subprocess.run([*command, text], check=False, timeout=60)

    return tell


def load() -> list[DAG]:
    """Return the DAGs of the settings file; none when ROUNDCRAWL_DAGS is not set."""
    path = os.environ.get(CONFIG)
    return [crawl_dag(settings) for settings in json.loads(Path(path).read_text())] if path else []


for _dag in load():
    globals()[_dag.dag_id] = _dag
