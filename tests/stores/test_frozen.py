"""A round that is frozen past its lease and wakes: whoever took over goes on alone."""

from __future__ import annotations

import signal
import subprocess

import pytest

from connectors.clock import SystemClock
from tests.fakes.calm_web import pacing_faults
from tests.fakes.remote_crawl import RemoteCrawl

DELAY_SECONDS = 1.0


def wait_for_requests(crawl: RemoteCrawl, process: subprocess.Popen[str], more: int) -> None:
    clock, enough = SystemClock(), len(crawl.server.log) + more
    while len(crawl.server.log) < enough:
        assert process.poll() is None, process.communicate()[0]
        clock.wait(0.02)


@pytest.mark.timeout(600)
def test_a_frozen_round_asks_nothing_once_it_was_succeeded(crawl: RemoteCrawl) -> None:
    crawl.dies = True
    assert crawl.round("--rounds=2")[0] == 0
    flags = crawl.flags("--run_id=three", f"--min_delay_seconds={DELAY_SECONDS}", "--checkpoint_seconds=1")
    before = len(crawl.server.log)
    frozen = crawl.start("round", *flags)
    wait_for_requests(crawl, frozen, 25)
    frozen.send_signal(signal.SIGSTOP)
    second = crawl.start("round", *flags)
    wait_for_requests(crawl, second, 10)
    frozen.send_signal(signal.SIGCONT)
    out, _ = frozen.communicate(timeout=240)
    assert frozen.returncode == 3, out
    assert "another run has taken it over" in out.splitlines()[-1]
    out, _ = second.communicate(timeout=240)
    assert second.returncode == 0, out
    assert crawl.folder.read_manifest(3).run_id == "three"
    assert pacing_faults(crawl.server.log[before:], DELAY_SECONDS, DELAY_SECONDS) == []
    assert crawl.run("audit", f"--crawl={crawl.root}")[0] == 0
