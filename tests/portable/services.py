"""The processes that engines are made of, on loopback, for the length of a ``with`` block."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

ROOT = Path(__file__).parents[2]
PRISM_SOURCE = "github.com/apache/beam/sdks/v2/go/cmd/prism@v2.77.0"
STARTED = re.compile(r"worker \S+: started as process (\d+)")


@dataclass(frozen=True)
class Service:
    """A process that has printed where it listens, and where its log lines go."""

    process: subprocess.Popen[str]
    address: str
    log_path: Path

    def log(self) -> str:
        """Return what it has logged so far."""
        return self.log_path.read_text(encoding="utf-8", errors="replace")

    def workers(self) -> list[int]:
        """Return the process of each worker that a pool has started and that is alive."""
        return [int(pid) for pid in STARTED.findall(self.log()) if is_alive(int(pid))]


def is_alive(pid: int) -> bool:
    """Return whether a process runs and is no zombie."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


@contextlib.contextmanager
def serving(log_path: Path, *command: str) -> Iterator[Service]:
    """Start a process of this project that prints its address first; end it afterwards."""
    with log_path.open("w") as log, _started(command, log) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        if not address:
            raise RuntimeError(f"{command} ended: {log_path.read_text()}")
        yield Service(process, address, log_path)


@contextlib.contextmanager
def _started(command: Sequence[str], log: IO[str]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, *command], cwd=ROOT, stdout=subprocess.PIPE, stderr=log, text=True
    )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def worker_pool(log_path: Path) -> contextlib.AbstractContextManager[Service]:
    """Return a worker pool on a free port of loopback."""
    return serving(log_path, "-m", "runners.worker_pool", "--address=127.0.0.1:0")


def job_service(log_path: Path, workers: int) -> contextlib.AbstractContextManager[Service]:
    """Return Beam's local job service with this number of workers."""
    return serving(log_path, "-m", "tests.portable.job_service", f"--workers={workers}")


def prism_binary() -> str:
    """Return the Prism of PRISM_BIN, of .cache/bin, or one that the Go toolchain builds there now."""
    given = os.environ.get("PRISM_BIN")
    if given:
        return given
    binary = ROOT / ".cache" / "bin" / "prism"
    if not binary.exists():
        if shutil.which("go") is None:
            raise RuntimeError("no Prism: set PRISM_BIN to its binary, or install a Go toolchain")
        binary.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            ["go", "install", PRISM_SOURCE], env={**os.environ, "GOBIN": str(binary.parent)}, check=True
        )
    return str(binary)
