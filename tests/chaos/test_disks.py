"""A disk that fills up, or cannot be written to: one line that names the path, and nothing wrong is committed.

The disks are small file systems in memory, mounted by the test: it needs Linux and root.
"""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines import audit, status
from pipelines import plan as plan_command
from pipelines import round as round_command
from tests.fakes.calm_web import calm_web
from tests.fakes.crawl_outcome import differences, outcome_of
from tests.fakes.kills import KilledCrawl
from tests.fakes.toy_server import serve

pytestmark = pytest.mark.timeout(3600)
FIRST_KILOBYTES, GROWTH = 60, 1.12
ENOUGH = "256m"


class Disk:
    """A file system of its own; ``remount`` changes its size or makes it read-only."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self._mount("-t", "tmpfs", "-o", f"size={ENOUGH}", "none")

    def remount(self, options: str) -> None:
        self._mount("-o", f"remount,{options}")

    def unmount(self) -> None:
        subprocess.run(["umount", "--lazy", str(self.folder)], check=True)

    def _mount(self, *options: str) -> None:
        subprocess.run(["mount", *options, str(self.folder)], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    disk = Disk(tmp_path / "disk")
    yield disk
    disk.unmount()


def run(crawl: KilledCrawl, number: int) -> tuple[int, str]:
    """Run a round in this process; return the exit code and the last line on stderr."""
    out = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(out):
        code = round_command.main(crawl.flags(number))
    return code, (out.getvalue().splitlines() or [""])[-1]


def test_a_full_disk_costs_a_rerun(tmp_path: Path, disk: Disk) -> None:
    with serve(calm_web()) as server:
        undisturbed = KilledCrawl(tmp_path / "undisturbed/crawl", server, 0.1, 0.5)
        undisturbed.run()
    with serve(calm_web()) as server:
        crawl = KilledCrawl(disk.folder / "crawl", server, 0.1, 0.5)
        kilobytes, refusals, number = float(FIRST_KILOBYTES), 0, 1
        while number <= 3:
            disk.remount(f"size={kilobytes:.0f}k")
            code, line = run(crawl, number)
            if code == 0:
                number += 1
                continue
            refusals += 1
            assert code == 1 and "the disk is full" in line and str(disk.folder) in line, (kilobytes, line)
            kilobytes *= GROWTH
        assert refusals > 10
        assert crawl.check() == []
    assert differences(outcome_of(undisturbed.crawl), outcome_of(crawl.crawl)) == []


def test_a_folder_that_cannot_be_written_can_be_looked_at(disk: Disk) -> None:
    with serve(calm_web()) as server:
        crawl = KilledCrawl(disk.folder / "crawl", server, 0.1, 0.5)
        assert run(crawl, 1) == (0, "") or crawl.attempt(1)
        before = sorted(path for path in disk.folder.rglob("*"))
        asked = len(server.log)
        disk.remount("ro")
        code, line = run(crawl, 2)
        assert code == 1 and str(disk.folder) in line and "check its permissions" in line
        with contextlib.redirect_stdout(io.StringIO()):
            for command in (audit, plan_command, status):
                assert command.main([f"--crawl={crawl.crawl}"]) == 0
        words = [sys.executable, "-m", "pipelines.inject", f"--crawl={crawl.crawl}", "http://new.example/"]
        refused = subprocess.run(words, capture_output=True, text=True, check=False)
        assert refused.returncode == 1 and str(disk.folder) in refused.stderr
        assert len(refused.stderr.splitlines()) == 1
        disk.remount("rw")
        assert sorted(path for path in disk.folder.rglob("*")) == before
        assert len(server.log) == asked
        assert crawl.attempt(2)
