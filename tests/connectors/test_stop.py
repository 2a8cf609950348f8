"""Stops: a signal that is kept, a second one that is not, and a file for workers elsewhere."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
from pathlib import Path

from connectors.rounds import CrawlFolder
from connectors.stop import StopMarker, StopSignal

WAITS = """
import sys
from connectors.stop import StopSignal
with StopSignal() as stop:
    print("ready", flush=True)
    stop.event.wait()
    print(stop.signal_name, flush=True)
    if sys.argv[1] == "stubborn":
        while True:
            sys.stdin.read()
"""


def waiting(how: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", WAITS, how], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def test_a_signal_is_kept_for_the_program() -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        with waiting("polite") as process:
            process.send_signal(number)
            assert process.stdout is not None
            assert process.stdout.read() == f"{number.name}\n"
        assert process.returncode == 0


def test_a_second_signal_ends_the_program() -> None:
    with waiting("stubborn") as process:
        assert process.stdout is not None
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == "SIGTERM\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == -signal.SIGTERM


def test_handlers_are_given_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with StopSignal() as stop:
        assert signal.getsignal(signal.SIGTERM) != before
        signal.raise_signal(signal.SIGTERM)
        assert stop.requested
        assert stop.signal_name == "SIGTERM"
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_marker_stops_its_run_and_no_other(tmp_path: Path) -> None:
    folder = CrawlFolder.at(str(tmp_path))
    marker = StopMarker(folder, 3, "abc")
    assert not marker.requested()
    marker.request("SIGTERM", 1.5)
    marker.request("SIGINT", 2.5)
    assert pickle.loads(pickle.dumps(marker)).requested()
    assert not StopMarker(folder, 3, "abd").requested()
    assert not StopMarker(folder, 4, "abc").requested()
    assert folder.storage.exists("rounds/000003/stop-abc.json")
