"""What of a worker's log reaches the command's: its own lines and warnings, as the lines that they were."""

from __future__ import annotations

import logging

import pytest
from apache_beam.portability.api import beam_fn_api_pb2

from runners import logs


def relayed(severity: str, place: str, text: str = "said") -> logging.LogRecord:
    entry = beam_fn_api_pb2.LogEntry(message=text, log_location=place)
    entry.severity = beam_fn_api_pb2.LogEntry.Severity.Enum.Value(severity)
    level = logging.WARNING if severity == "WARN" else logging.INFO
    return logging.LogRecord("root", level, "sdk.py", 1, str(entry), (), None)


@pytest.mark.parametrize(
    ("severity", "place", "wanted"),
    [
        ("INFO", "/somewhere/transforms/shard_run.py:12", True),
        ("INFO", "/site-packages/apache_beam/runners/worker/sdk_worker.py:12", False),
        ("WARN", "/site-packages/apache_beam/runners/worker/sdk_worker.py:12", True),
        ("WARN", "/site-packages/apache_beam/runners/worker/sdk_worker_main.py:12", False),
        ("ERROR", "/site-packages/apache_beam/runners/worker/sdk_worker_main.py:12", True),
        ("INFO", "/site-packages/library/pool.py:3", False),
    ],
)
def test_a_workers_entry_is_judged_by_who_wrote_it(severity: str, place: str, wanted: bool) -> None:
    assert logs._is_wanted(relayed(severity, place)) is wanted


def test_a_workers_entry_becomes_its_line_again() -> None:
    record = relayed("INFO", "/x/transforms/shard_run.py:12", 'round 1 shard 0: "end"')
    assert logs._Lines("%(levelname)s %(message)s").format(record) == 'INFO round 1 shard 0: "end"'


def test_what_only_looks_like_an_entry_is_kept_as_it_is() -> None:
    record = logging.LogRecord("root", logging.INFO, "x.py", 1, "severity: none of these", (), None)
    assert logs._is_wanted(record)
    assert logs._Lines("%(message)s").format(record) == "severity: none of these"
