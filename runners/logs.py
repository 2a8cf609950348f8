"""Where log lines go: the crawl's own at INFO, everyone else's at WARNING, all to stderr, never to stdout."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

OURS = ("connectors", "transforms", "pipelines", "runners")

# What Beam warns about although it is as it should be: that a worker finds no main session, that it does not know
# options of the submitting side, that a job server starts and ends.
_NOISY = (
    "apache_beam.runners.worker.sdk_worker_main",
    "apache_beam.options.pipeline_options",
    "apache_beam.utils.subprocess_server",
)

LEVELS = {**dict.fromkeys(OURS, "INFO"), **dict.fromkeys(_NOISY, "ERROR")}

# WARN, not WARNING: job servers in Java read these too, and refuse a level that theirs does not know.
WORKER_LOGGING = (
    "--default_sdk_harness_log_level=WARN",
    f"--sdk_harness_log_level_overrides={json.dumps(LEVELS)}",
)
"""Beam arguments that give a worker elsewhere the same levels."""

# How the engines of this machine log an entry that a worker sent them: as the text of its message.
_RELAYS = {"root": "", "apache_beam.runners.portability.local_job_service": "Worker: "}


def start_logging() -> None:
    """Send log lines of this process to stderr. Does nothing where logging is set up already."""
    root = logging.getLogger()
    if root.handlers:
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines("%(asctime)s %(levelname)s %(message)s"))
    handler.addFilter(_is_wanted)
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    for name in _NOISY:
        logging.getLogger(name).setLevel(logging.ERROR)


def _is_wanted(record: logging.LogRecord) -> bool:
    """Return whether a record is the crawl's own, here or in a worker, or a warning."""
    if record.name == "root" and "apitools not found" in record.getMessage():
        # Beam says so at its import wherever the extra for Google Cloud is not installed.
        return False
    if record.name == "root" and record.module == "pipeline_options":
        # Beam names each option of the submitting side that is unset.
        return False
    if _is_relayed(record):
        return _is_wanted_of_worker(record)
    return record.levelno >= logging.WARNING or record.name.partition(".")[0] in OURS


def _is_wanted_of_worker(record: logging.LogRecord) -> bool:
    """Return whether a worker's entry is the crawl's own or a warning: not every engine tells workers the levels."""
    entry = _relayed_entry(record)
    if entry is None:
        return True
    place = entry.log_location.rpartition(":")[0].removesuffix(".py")
    if place.endswith(tuple(name.replace(".", "/") for name in _NOISY)):
        return bool(entry.severity >= entry.Severity.ERROR)
    return bool(entry.severity >= entry.Severity.WARN) or place.rpartition("/")[0].endswith(OURS)


def _is_relayed(record: logging.LogRecord) -> bool:
    prefix = _RELAYS.get(record.name)
    return prefix is not None and record.getMessage().startswith(f"{prefix}severity: ")


def _relayed_entry(record: logging.LogRecord) -> Any:
    """Return the entry that a worker sent, None for a text that is none."""
    from apache_beam.portability.api import beam_fn_api_pb2
    from google.protobuf import text_format

    text = record.getMessage().removeprefix(_RELAYS[record.name])
    try:
        return text_format.Parse(text, beam_fn_api_pb2.LogEntry())
    except text_format.ParseError:
        return None


class _Lines(logging.Formatter):
    """One line for each record; a worker's relayed entry becomes the line that it was."""

    def format(self, record: logging.LogRecord) -> str:
        entry = _relayed_entry(record) if _is_relayed(record) else None
        if entry is None:
            return super().format(record)
        return super().format(logging.makeLogRecord({**record.__dict__, "msg": entry.message, "args": ()}))
