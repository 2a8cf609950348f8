"""The real round command as a process group that a test can stop, kill and account for (Linux)."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from connectors.clock import SystemClock

ROOT = Path(__file__).parents[2]
LONGEST_SECONDS = 240.0


class RoundProcess:
    """`python -m pipelines.round` in a process group of its own, its output in a file.

    Use it in a `with` block: whatever is left of the group at its end is killed.
    """

    def __init__(self, arguments: Sequence[str], output: Path, **environment: str) -> None:
        self.output = output
        self._clock = SystemClock()
        with output.open("ab") as sink:
            self._start = sink.tell()
            self.process = subprocess.Popen(
                [sys.executable, "-m", "pipelines.round", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                cwd=ROOT,
                env={**os.environ, **environment},
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    @property
    def is_running(self) -> bool:
        """Whether the command itself has not ended."""
        return self.process.poll() is None

    @property
    def printed(self) -> str:
        """What this run has printed so far, to both streams."""
        with self.output.open("rb") as source:
            source.seek(self._start)
            return source.read().decode(errors="replace")

    def end(self, seconds: float = LONGEST_SECONDS) -> int:
        """Wait for the command to end and return its exit code."""
        return self.process.wait(seconds)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the command alone, as an operator's `kill` does."""
        self.process.send_signal(number)

    def kill(self, *, whole_group: bool) -> None:
        """SIGKILL the command, or it and every process that it started, and wait until it is gone."""
        with contextlib.suppress(ProcessLookupError):
            (os.killpg if whole_group else os.kill)(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def survivors(self, seconds: float = 10.0) -> list[str]:
        """Return the command lines of the group's processes that still run after up to this time."""
        end = self._clock.monotonic() + seconds
        while (alive := _members(self.process.pid)) and self._clock.monotonic() < end:
            self._clock.wait(0.02)
        return alive


def _members(group: int) -> list[str]:
    """Return the command lines of a process group's processes; a dead one that nobody waited for is none."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                state, _, of_group = (folder / "stat").read_text().rpartition(")")[2].split()[:3]
                if int(of_group) == group and state not in "ZX":
                    line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    found.append(f"{folder.name} {line[:200]}")
    return found
