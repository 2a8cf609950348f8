"""A stop is no fault: what Beam logs of it stays out of the log, everything else stays in."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator

import pytest

from runners.quiet import unlogged


class Stopped(Exception):
    """A stop."""


class StoppedLate(Stopped):
    """A kind of stop."""


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    sink = io.StringIO()
    handler = logging.StreamHandler(sink)
    logging.getLogger().addHandler(handler)
    yield sink
    logging.getLogger().removeHandler(handler)


def fail(kind: type[Exception]) -> None:
    log = logging.getLogger("beam.worker")
    try:
        raise kind("why")
    except Exception:
        log.exception("%s failed", kind.__name__)


def test_only_the_named_exception_is_kept_out(lines: io.StringIO) -> None:
    with unlogged(Stopped):
        fail(Stopped)
        fail(StoppedLate)
        fail(ValueError)
        logging.getLogger("root").error("a worker said: Traceback ...\ntransforms.view.Stopped: round 2")
        logging.getLogger("root").error("a worker said: it Stopped")
    text = lines.getvalue()
    assert "Stopped failed" not in text and "StoppedLate" not in text and "round 2" not in text
    assert "ValueError: why" in text and "it Stopped" in text


def test_afterwards_all_is_logged_again(lines: io.StringIO) -> None:
    with unlogged(Stopped):
        pass
    fail(Stopped)
    assert "Stopped: why" in lines.getvalue()
