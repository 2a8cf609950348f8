"""Kill a crawl's rounds again and again, resume them, and hold what was asked and what is left to the promises."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from connectors import parts
from connectors.clock import SystemClock
from connectors.journal import Journal, journal_shards
from connectors.rounds import CrawlFolder
from pipelines import audit, inject
from tests.fakes.calm_web import pacing_faults
from tests.fakes.round_process import RoundProcess
from tests.fakes.toy_server import Access, ToyServer

AS_OF = ("2026-12-01T00:00:00Z", "2026-12-01T02:00:00Z", "2027-02-01T00:00:00Z")
PHASES = ("starting", "planning", "fetching", "parsing", "merging", "committing", "publishing")
LINGER_SECONDS = {
    "starting": 3.0,
    "planning": 0.1,
    "fetching": 3.0,
    "parsing": 0.2,
    "merging": 0.3,
    "committing": 0.1,
    "publishing": 0.05,
}
POLL_SECONDS = 0.01
CHECKPOINT_SECONDS = 1.0
# Closing a segment takes a while, and the loop looks once a second whether it is time.
SLACK_SECONDS = 6.0


class Kill(NamedTuple):
    """One kill: of which round, in which phase, when (epoch seconds), and how long after the command's start."""

    round: int
    phase: str
    at: float
    after_seconds: float


class Journalled(NamedTuple):
    """What a round's journal holds: every URL that was asked, and when its last entry was closed."""

    urls: frozenset[str]
    closed_at: float


def journalled(crawl: Path, number: int) -> Journalled:
    """Read the journal of a round."""
    folder = CrawlFolder.at(str(crawl))
    urls: set[str] = set()
    closed_at = 0.0
    for shard in journal_shards(folder, number):
        for entry in Journal(folder, number, shard).entries():
            table = parts.read_digested(
                folder.storage, entry.outcomes_path, entry.digests[entry.outcomes_path]
            )
            asked = zip(table.column("url").to_pylist(), table.column("started_at").to_pylist(), strict=True)
            urls.update(url for url, started_at in asked if started_at is not None)
            closed_at = max(closed_at, entry.closed_at)
    return Journalled(frozenset(urls), closed_at)


class PhaseWatch:
    """Tells from the crawl folder how far the attempt is that starts now; files of earlier ones do not count."""

    def __init__(self, crawl: Path, number: int) -> None:
        self._folder = crawl / f"rounds/{number:06d}"
        self._earlier = set(self._files())

    def phase(self) -> str:
        """Return the phase in which the attempt is."""
        if (self._folder / "manifest.json").exists():
            return "publishing"
        fresh = [name for name in self._files() if name not in self._earlier]
        if any(name.startswith("staged/tables/captures") for name in fresh):
            return "committing"
        if any("-by-partition-" in name for name in fresh):
            return "merging"
        if any(name.startswith("work/parsed-") for name in fresh):
            return "parsing"
        if any("/started-" in name for name in fresh):
            return "fetching"
        return "planning" if any(name.startswith("plan/") for name in fresh) else "starting"

    def _files(self) -> list[str]:
        base = len(str(self._folder)) + 1
        return [f"{folder}/{name}"[base:] for folder, _, names in os.walk(self._folder) for name in names]


class KilledCrawl:
    """A crawl of a toy web in three rounds, with or without kills; ``faults`` is what went wrong.

    ``delay_seconds`` is the crawl's, ``crawl_delay_seconds`` that of the calm web's slow host.
    """

    def __init__(
        self, crawl: Path, server: ToyServer, delay_seconds: float, crawl_delay_seconds: float, seed: int = 0
    ) -> None:
        self.crawl, self.server = crawl, server
        self.delays = (delay_seconds, crawl_delay_seconds)
        self.kills: list[Kill] = []
        self.faults: list[str] = []
        self._random = random.Random(seed)
        self._clock = SystemClock()
        crawl.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.redirect_stdout(io.StringIO()):
            assert inject.main([f"--crawl={crawl}", "--salt=calm", *server.web.seeds()]) == 0

    def flags(self, number: int) -> list[str]:
        """Return the command line of a round."""
        return [
            f"--crawl={self.crawl}",
            "--runner=FnApiRunner",
            "--shards=2",
            f"--run_id=run-{number}",
            f"--as_of={AS_OF[number - 1]}",
            f"--connect_to=::127.0.0.1:{self.server.port}",
            f"--min_delay_seconds={self.delays[0]}",
            "--latency_factor=0",
            "--max_body_bytes=250000",
            f"--checkpoint_seconds={CHECKPOINT_SECONDS}",
        ]

    def run(self, targets: Sequence[Sequence[str]] = ((), (), ())) -> None:
        """Run the rounds; ``targets`` names, for each round, the phases in which attempts are to be killed."""
        for number, phases in enumerate(targets, start=1):
            waiting = list(phases)
            while not self.attempt(number, waiting.pop(0) if waiting else None):
                if self.kills[-1].phase == "publishing" and number < len(targets) and not waiting:
                    break  # It is committed: the next round's command must finish the publication.
        self.faults += self.check()

    def check(self) -> list[str]:
        """Return what is wrong with the access log, by the audit, and with the files that lie there."""
        return pacing_faults(self.server.log, *self.delays) + self._audit_faults() + self._litter()

    def random_targets(self, kills: int) -> list[list[str]]:
        """Return phases for about so many kills, most of them where most of a round's time goes.

        Those of a round stand in the round's order: what an attempt has finished, the next one does not do again.
        """
        rounds: list[list[str]] = [[], [], []]
        for phase in self._random.choices(PHASES, [1, 1, 4, 2, 2, 2, 1], k=kills):
            self._random.choices(rounds, [1, 2, 3])[0].append(phase)
        return [sorted(phases, key=PHASES.index) for phases in rounds]

    def start(self, number: int, *more: str) -> RoundProcess:
        """Start the command of a round; for a `with` block."""
        return RoundProcess([*self.flags(number), *more], self.crawl.parent / "output.txt")

    def attempt(self, number: int, target: str | None = None) -> bool:
        """Run the round once, to its end or its kill; return whether it is committed and published."""
        watch = PhaseWatch(self.crawl, number)
        before, started_at = journalled(self.crawl, number), self._clock.now()
        with self.start(number) as process:
            kill = self._kill(process, watch, number, target, started_at) if target else None
            code = process.end() if kill is None else None
            alive = process.survivors()
        after = journalled(self.crawl, number)
        self.faults += [f"{kill}: still alive: {line}" for line in alive]
        self.faults += self._fetch_faults(started_at, before, after, kill)
        if kill is not None:
            self.kills.append(kill)
            return False
        if code != 0:
            raise AssertionError(f"round {number} ended with {code}: {process.printed}")
        return True

    def _kill(
        self, process: RoundProcess, watch: PhaseWatch, number: int, target: str, started_at: float
    ) -> Kill | None:
        """Kill the command some time after it has reached its phase; None when it ended before."""
        while process.is_running and PHASES.index(watch.phase()) < PHASES.index(target):
            self._clock.wait(POLL_SECONDS)
        linger = self._random.uniform(0, LINGER_SECONDS[target])
        end = self._clock.monotonic() + linger
        while process.is_running and self._clock.monotonic() < end:
            self._clock.wait(POLL_SECONDS)
        phase = watch.phase()
        if not process.is_running:
            return None
        process.kill(whole_group=self._random.random() < 0.5)
        return Kill(number, phase, self._clock.now(), self._clock.now() - started_at)

    def _fetch_faults(
        self, started_at: float, before: Journalled, after: Journalled, kill: Kill | None
    ) -> Iterable[str]:
        """Nothing journalled is asked again, nothing twice by one attempt; a kill costs one checkpoint."""
        asked = [access for access in self.server.log if access.arrived_at >= started_at]
        counts = Counter(url_of(access) for access in asked)
        yield from (f"asked {n} times by one attempt: {url}" for url, n in counts.items() if n > 1)
        yield from (f"asked although journalled: {url}" for url in counts if url in before.urls)
        lost = [access for access in asked if url_of(access) not in after.urls]
        since = max(started_at, after.closed_at)
        if kill is None:
            yield from (f"asked and not journalled: {access}" for access in lost)
        elif lost:
            early = [access for access in lost if access.ended_at < since - 0.5]
            yield from (f"{kill}: lost, though a segment was closed at {since} after it: {a}" for a in early)
            first = min(access.ended_at for access in lost)
            if kill.at - first > CHECKPOINT_SECONDS + SLACK_SECONDS:
                yield f"{kill}: it cost {kill.at - first:.1f} s of fetching"

    def _audit_faults(self) -> list[str]:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            audit.main([f"--crawl={self.crawl}", "--json"])
        return [f"audit: {fault}" for fault in json.loads(out.getvalue())["faults"]]

    def _litter(self) -> list[str]:
        """Return WARC, table and index files that no manifest names, and named ones that are not there."""
        manifests = [json.loads(path.read_bytes()) for path in self.crawl.glob("rounds/*/manifest.json")]
        named = {entry["path"] for manifest in manifests for entry in manifest["files"]}
        public = ("warc/", "tables/", "index/")
        there = {
            str(path.relative_to(self.crawl))
            for top in public
            for path in self.crawl.glob(f"{top}**/*")
            if path.is_file()
        }
        wanted = {path for path in named if path.startswith(public)}
        return [f"litter: {path}" for path in sorted(there - wanted)] + [
            f"missing: {path}" for path in sorted(wanted - there)
        ]


def url_of(access: Access) -> str:
    """Return the URL that a request was for."""
    return f"http://{access.host}{access.path}"
