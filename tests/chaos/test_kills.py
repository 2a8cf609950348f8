"""KILLS=n kill -9 at random moments of a toy crawl's rounds: nothing is lost, nothing is fetched twice."""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.fakes.calm_web import calm_web
from tests.fakes.crawl_outcome import differences, outcome_of
from tests.fakes.kills import PHASES, KilledCrawl
from tests.fakes.toy_server import serve

KILLS = int(os.environ.get("KILLS", "200"))
SEED = int(os.environ.get("SEED", "1"))
KILLS_A_CRAWL = 15
DELAYS = ((0.1, 5.0), (3.0, 3.0), (0.1, 0.5))


@pytest.mark.timeout(60 * KILLS + 600)
def test_a_crawl_survives_kills_at_any_moment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    began = time.monotonic()
    with serve(calm_web()) as server:
        undisturbed = KilledCrawl(tmp_path / "undisturbed/crawl", server, 0.1, 0.5)
        undisturbed.run()
    assert undisturbed.faults == []
    expected = outcome_of(undisturbed.crawl)
    assert len(expected.pages) > 30 and len(expected.duplicates) > 3
    phases: Counter[str] = Counter()
    number = 0
    while (left := KILLS - phases.total()) > 0:
        number += 1
        delay, crawl_delay = DELAYS[number % len(DELAYS)]
        with serve(calm_web(crawl_delay_seconds=crawl_delay)) as server:
            crawl = KilledCrawl(
                tmp_path / f"{number}/crawl", server, delay, crawl_delay, SEED * 1000 + number
            )
            crawl.run(crawl.random_targets(min(left, KILLS_A_CRAWL)))
        phases.update(kill.phase for kill in crawl.kills)
        with capsys.disabled():
            passed = ", ".join(f"{phase} {phases[phase]}" for phase in PHASES)
            print(f"\n{phases.total()} kills in {time.monotonic() - began:.0f} s: {passed}", flush=True)
        assert crawl.faults == [], crawl.kills
        assert differences(expected, outcome_of(crawl.crawl)) == [], crawl.kills
