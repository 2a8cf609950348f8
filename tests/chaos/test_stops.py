"""SIGTERM and Ctrl-C in every phase: a clean end within moments, a line that says how to go on, and it goes on."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from connectors.clock import SystemClock
from tests.fakes.calm_web import calm_web
from tests.fakes.crawl_outcome import differences, outcome_of
from tests.fakes.kills import PHASES, KilledCrawl, PhaseWatch
from tests.fakes.round_process import RoundProcess
from tests.fakes.toy_server import serve

pytestmark = pytest.mark.timeout(1800)
RESUME = "to resume: python -m pipelines.round "
GO_ON = "to go on: python -m pipelines.round "
SLOW_SECONDS = 24.0
CUT_SECONDS = 10.0


def stopped_in(crawl: KilledCrawl, number: int, phase: str, name: str) -> bool:
    """Stop a round in a phase; return whether it was committed all the same, by the exit code's word."""
    clock, watch = SystemClock(), PhaseWatch(crawl.crawl, number)
    with crawl.start(number) as process:
        while process.is_running and PHASES.index(watch.phase()) < PHASES.index(phase):
            clock.wait(0.01)
        process.signal(signal.Signals[name])
        code, printed = process.end(), process.printed
        assert process.survivors() == []
    assert "Traceback" not in printed, printed
    if code == 1:
        assert RESUME in printed.splitlines()[-1], printed
        assert shlex.split(printed.splitlines()[-1].partition(RESUME)[2]) == crawl.flags(number)
        assert watch.phase() != "publishing"
    else:
        assert code == 0 and watch.phase() == "publishing", (phase, code, printed)
    return code == 0


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_stop_in_any_phase_is_clean(tmp_path: Path, name: str) -> None:
    with serve(calm_web()) as server:
        undisturbed = KilledCrawl(tmp_path / "undisturbed/crawl", server, 0.1, 0.5)
        undisturbed.run()
    with serve(calm_web()) as server:
        crawl = KilledCrawl(tmp_path / "stopped/crawl", server, 0.3, 0.5)
        for number in (1, 2, 3):
            for phase in ("planning", "fetching", "parsing", "merging", "committing"):
                if stopped_in(crawl, number, phase, name):
                    break
            else:
                assert crawl.attempt(number)
        assert crawl.check() == []
    assert differences(outcome_of(undisturbed.crawl), outcome_of(crawl.crawl)) == []


@pytest.fixture
def slow_crawl(tmp_path: Path) -> Iterator[KilledCrawl]:
    """A crawl before its round with a page that takes 24 s to come."""
    with serve(calm_web(slow_seconds=SLOW_SECONDS)) as server:
        crawl = KilledCrawl(tmp_path / "crawl", server, 0.1, 0.5)
        assert crawl.attempt(1) and crawl.attempt(2)
        yield crawl


def test_a_download_that_does_not_end_is_cut_and_asked_again(slow_crawl: KilledCrawl) -> None:
    clock, answer = SystemClock(), slow_crawl.server.web.respond
    asked: list[float] = []

    def respond(host: str, target: str, *more: object, **facts: object):
        if target == "/slow":
            asked.append(clock.monotonic())
        return answer(host, target, *more, **facts)

    slow_crawl.server.web.respond = respond  # type: ignore[method-assign]
    with slow_crawl.start(3) as process:
        while not asked:
            assert process.is_running, process.printed
            clock.wait(0.01)
        process.signal(signal.SIGTERM)
        stopped_at = clock.monotonic()
        assert process.end() == 1
        took = clock.monotonic() - stopped_at
        assert RESUME in process.printed.splitlines()[-1] and "Traceback" not in process.printed
    assert CUT_SECONDS - 1 <= took < SLOW_SECONDS - 2
    assert slow_crawl.attempt(3)
    assert len(asked) == 2
    assert slow_crawl.check() == []


def test_no_round_begins_after_a_stop(tmp_path: Path) -> None:
    with serve(calm_web()) as server:
        crawl = KilledCrawl(tmp_path / "crawl", server, 0.1, 0.5)
        flags = [flag for flag in crawl.flags(1) if not flag.startswith(("--run_id", "--as_of"))]
        watch, clock = PhaseWatch(crawl.crawl, 1), SystemClock()
        with RoundProcess([*flags, "--rounds=3"], tmp_path / "output.txt") as process:
            while watch.phase() not in ("merging", "committing", "publishing"):
                clock.wait(0.01)
            process.signal(signal.SIGTERM)
            assert process.end() == 1
            last = process.printed.splitlines()[-1]
        assert (GO_ON if watch.phase() == "publishing" else RESUME) in last, last
        assert not (crawl.crawl / "rounds/000002/plan.json").exists()
