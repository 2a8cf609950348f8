"""Rounds that are killed, stopped, frozen or started twice, with the real command: the crawl is the same after it."""

from __future__ import annotations

import contextlib
import io
import shlex
import signal
from pathlib import Path

import pytest

from connectors.clock import SystemClock
from pipelines import round as round_command
from tests.fakes.calm_web import calm_web
from tests.fakes.crawl_outcome import CrawlOutcome, differences, outcome_of
from tests.fakes.kills import KilledCrawl
from tests.fakes.round_process import RoundProcess
from tests.fakes.toy_server import serve

CRAWL_DELAY_SECONDS = 4.0
RESUME = "to resume: python -m pipelines.round "


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> CrawlOutcome:
    """What the crawl is when nothing happens to it."""
    with serve(calm_web()) as server:
        crawl = KilledCrawl(tmp_path_factory.mktemp("undisturbed") / "crawl", server, 0.1, 0.5)
        for number in (1, 2, 3):
            with contextlib.redirect_stdout(io.StringIO()):
                assert round_command.main(crawl.flags(number)) == 0
        assert crawl.check() == []
    return outcome_of(crawl.crawl)


def wait_for_requests(crawl: KilledCrawl, process: RoundProcess, more: int) -> None:
    """Wait until the server has seen this many more requests."""
    clock, enough = SystemClock(), len(crawl.server.log) + more
    while len(crawl.server.log) < enough:
        assert process.is_running, process.printed
        clock.wait(0.01)


@pytest.mark.timeout(400)
def test_a_killed_crawl_is_the_undisturbed_one(tmp_path: Path, undisturbed: CrawlOutcome) -> None:
    with serve(calm_web(crawl_delay_seconds=CRAWL_DELAY_SECONDS)) as server:
        crawl = KilledCrawl(tmp_path / "crawl", server, 0.1, CRAWL_DELAY_SECONDS, seed=7)
        crawl.run([["publishing"], ["fetching"], ["merging"]])
    assert len(crawl.kills) == 3
    assert crawl.faults == [], crawl.kills
    assert differences(undisturbed, outcome_of(crawl.crawl)) == []


@pytest.mark.timeout(400)
def test_two_at_once_a_frozen_one_and_a_stopped_one(tmp_path: Path, undisturbed: CrawlOutcome) -> None:
    with serve(calm_web()) as server:
        crawl = KilledCrawl(tmp_path / "crawl", server, 0.5, 0.5)
        two_started_at_once(crawl)
        one_frozen_while_another_starts(crawl)
        one_stopped_and_resumed(crawl)
        run_again_by_mistake(crawl)
        assert crawl.check() == []
    assert differences(undisturbed, outcome_of(crawl.crawl)) == []


def two_started_at_once(crawl: KilledCrawl) -> None:
    with crawl.start(1) as one, crawl.start(1) as other:
        assert sorted((one.end(), other.end())) == [0, 3]
    assert "is held by process" in one.printed + other.printed


def one_frozen_while_another_starts(crawl: KilledCrawl) -> None:
    with crawl.start(2, "--lease_seconds=1") as frozen:
        wait_for_requests(crawl, frozen, 5)
        frozen.signal(signal.SIGSTOP)
        asked = len(crawl.server.log)
        with crawl.start(2, "--lease_seconds=1") as second:
            assert second.end() == 3
            assert f"is held by process {frozen.process.pid}" in second.printed
        assert len(crawl.server.log) <= asked + 1
        frozen.signal(signal.SIGCONT)
        assert frozen.end() == 0, frozen.printed


def one_stopped_and_resumed(crawl: KilledCrawl) -> None:
    with crawl.start(3) as stopped:
        wait_for_requests(crawl, stopped, 10)
        stopped.signal(signal.SIGTERM)
        assert stopped.end() == 1, stopped.printed
        last = stopped.printed.splitlines()[-1]
        assert RESUME in last and "Traceback" not in stopped.printed, stopped.printed
        assert stopped.survivors() == []
    words = shlex.split(last.partition(RESUME)[2])
    assert words == crawl.flags(3)
    with RoundProcess(words, crawl.crawl.parent / "output.txt") as resumed:
        assert resumed.end() == 0, resumed.printed


def run_again_by_mistake(crawl: KilledCrawl) -> None:
    asked, out = len(crawl.server.log), io.StringIO()
    with contextlib.redirect_stdout(out):
        assert round_command.main(crawl.flags(2)) == 0
    assert out.getvalue().strip() == "already done: run-2"
    assert len(crawl.server.log) == asked
