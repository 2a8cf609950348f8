"""Where log lines go: the crawl's own at INFO, everyone else's at WARNING, all to stderr, never to stdout."""

from __future__ import annotations

import json
import logging
import re
import sys

OURS = ("connectors", "transforms", "pipelines", "runners")

WORKER_LOGGING = (
    "--default_sdk_harness_log_level=WARNING",
    f"--sdk_harness_log_level_overrides={json.dumps(dict.fromkeys(OURS, 'INFO'))}",
)
"""Beam arguments that give a worker elsewhere the same levels."""

# A worker's entry as Beam's local runner logs it: the text form of its message.
_RELAYED = re.compile(r'^severity: (?P<level>\w+)$.*^message: "(?P<text>.*)"$', re.MULTILINE | re.DOTALL)


class _Lines(logging.Formatter):
    """One line for each record: time, level, text; a worker's relayed entry becomes the line it was."""

    def format(self, record: logging.LogRecord) -> str:
        relayed = _RELAYED.search(record.getMessage()) if record.name == "root" else None
        if relayed:
            record = logging.makeLogRecord(
                {
                    **record.__dict__,
                    "msg": _unescaped(relayed["text"]),
                    "args": (),
                    "levelname": relayed["level"],
                }
            )
        return super().format(record)


def _unescaped(text: str) -> str:
    return text.replace('\\"', '"').replace("\\'", "'").replace("\\n", "\n").replace("\\\\", "\\")


def _is_wanted(record: logging.LogRecord) -> bool:
    """Return whether a record is the crawl's own, a worker's, or a warning."""
    if record.levelno >= logging.WARNING or record.name.partition(".")[0] in OURS:
        return True
    return record.name == "root" and _RELAYED.search(record.getMessage()) is not None


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
