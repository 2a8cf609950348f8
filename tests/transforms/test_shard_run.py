"""One shard on the real clock, its origin faked: what an attempt leaves to the next."""

from __future__ import annotations

import contextlib
import io
import threading
from pathlib import Path

import pytest

from connectors.clock import SystemClock
from connectors.delay_notes import DelayNotes
from connectors.faults import LeaseLost
from connectors.lease_lock import LockLease
from connectors.rounds import CrawlFolder
from crawler.urls import host_of
from pipelines import inject
from schemas.fetch import Capture, FetchRequest
from schemas.flags import CrawlFlags
from schemas.round import ListPart, RoundSpec, SegmentRef
from tests.fakes.captures import capture
from transforms import planning
from transforms.absorb import absorb
from transforms.round_packing import pack_round
from transforms.shard_run import ShardRun
from transforms.view import RoundView

DELAY_SECONDS = 0.3
CRAWL_DELAY_SECONDS = 1.2
PLAIN, SLOW = "plain.example", "slow.example"


class Origin:
    """Answers at once and logs (host, start); ``after`` is called once that many requests were answered."""

    stopped = False

    def __init__(self, calls: int = 0, after=lambda: None) -> None:
        self.log: list[tuple[str, str, float]] = []
        self._calls, self._after = calls, after
        self._lock = threading.Lock()
        self._clock = SystemClock()

    def fetch(self, request: FetchRequest) -> Capture:
        now = self._clock.now()
        host = host_of(request.url)
        with self._lock:
            self.log.append((host, request.url, now))
            if len(self.log) == self._calls:
                self._after()
        facts = {"url": request.url, "started_at": now, "finished_at": self._clock.now(), "ip": "127.0.0.1"}
        if not request.url.endswith("/robots.txt"):
            return capture(**facts)
        rules = f"User-agent: *\nCrawl-delay: {CRAWL_DELAY_SECONDS if host == SLOW else 0}\n".encode()
        return capture(**facts, body=rules, response_headers=(("Content-Type", "text/plain"),))

    def cut(self) -> None:
        """Nothing takes long here."""


@pytest.fixture
def planned(tmp_path: Path) -> tuple[RoundView, list[ListPart]]:
    """A round with three URLs on each of two hosts, planned and dealt to one shard."""
    crawl = tmp_path / "crawl"
    urls = [f"http://{host}/{n}" for host in (PLAIN, SLOW) for n in range(3)]
    with contextlib.redirect_stdout(io.StringIO()):
        assert inject.main([f"--crawl={crawl}", "--salt=x", *urls]) == 0
    identity, now = CrawlFolder.at(str(crawl)).identity(), SystemClock().now()
    flags = CrawlFlags(
        min_delay_seconds=DELAY_SECONDS, latency_factor=0, min_ip_delay_seconds=0, checkpoint_seconds=600
    )
    spec = RoundSpec(
        str(crawl),
        identity.name,
        "x",
        identity.partitions,
        "any",
        1,
        None,
        "r",
        now,
        now,
        now + 60,
        flags,
        "a",
    )
    view = RoundView(spec)
    dues = [planning.select_due(view, part) for part in absorb(view)]
    plan = pack_round(view, dues)
    assert plan is not None
    planning.commit_plan(view, plan)
    return view, [part for due in dues for part in planning.deal(view, due)]


def lost_after(view: RoundView, given: list[ListPart], requests: int) -> tuple[Origin, list[SegmentRef]]:
    """Run an attempt that loses its lease, and with it what it did not journal, after so many requests."""
    origin = Origin(requests, after=lambda: run.keeper.lost.set())
    run = ShardRun(view, 0, given, fetcher=origin)  # type: ignore[arg-type]
    segments: list[SegmentRef] = []
    with pytest.raises(LeaseLost):
        segments.extend(run.segments())
    return origin, segments


def first_of(origin: Origin, host: str) -> float:
    return min(at for name, _, at in origin.log if name == host)


def test_whoever_takes_over_lets_every_host_rest_first(planned: tuple[RoundView, list[ListPart]]) -> None:
    view, given = planned
    first, segments = lost_after(view, given, requests=4)
    assert {host for host, _, _ in first.log} == {PLAIN, SLOW} and segments == []
    second, taken_at = Origin(), SystemClock().now()
    list(ShardRun(view, 0, given, fetcher=second).segments())  # type: ignore[arg-type]
    assert first_of(second, PLAIN) >= taken_at + DELAY_SECONDS
    assert first_of(second, SLOW) >= taken_at + DELAY_SECONDS
    assert len({url for _, url, _ in second.log}) == len(second.log) == 8
    (entry,) = view.journal(0).entries()
    assert entry.is_last and entry.planned_done == 6


def test_a_crawl_delay_learned_just_before_is_kept(planned: tuple[RoundView, list[ListPart]]) -> None:
    view, given = planned
    first, _ = lost_after(view, given, requests=6)
    asked = [at for host, _, at in first.log if host == SLOW]
    assert len(asked) >= 2 and asked[1] - asked[0] >= CRAWL_DELAY_SECONDS
    assert DelayNotes(view.folder, 1, 0).read() == {SLOW: CRAWL_DELAY_SECONDS}
    second = Origin()
    list(ShardRun(view, 0, given, fetcher=second).segments())  # type: ignore[arg-type]
    assert first_of(second, SLOW) - asked[-1] >= CRAWL_DELAY_SECONDS


def test_a_finished_shard_is_not_fetched_again(planned: tuple[RoundView, list[ListPart]]) -> None:
    view, given = planned
    segments = list(ShardRun(view, 0, given, fetcher=Origin()).segments())  # type: ignore[arg-type]
    again = Origin()
    assert list(ShardRun(view, 0, given, fetcher=again).segments()) == segments  # type: ignore[arg-type]
    assert again.log == []


def test_a_download_in_hand_ends_before_its_shard_is_free(planned: tuple[RoundView, list[ListPart]]) -> None:
    view, given = planned
    ended: list[float] = []

    class Slow(Origin):
        def fetch(self, request: FetchRequest) -> Capture:
            answer = super().fetch(request)
            SystemClock().wait(0.5)
            ended.append(SystemClock().now())
            return answer

    origin = Slow(1, after=lambda: run.keeper.lost.set())
    run = ShardRun(view, 0, given, fetcher=origin)  # type: ignore[arg-type]
    with pytest.raises(LeaseLost):
        list(run.segments())
    assert len(ended) == len(origin.log) >= 1


def test_who_lost_the_lease_journals_nothing(
    planned: tuple[RoundView, list[ListPart]], tmp_path: Path
) -> None:
    view, given = planned
    lock = tmp_path / "crawl/leases/000001/shard-0000.lock"
    run = ShardRun(view, 0, given, fetcher=Origin(8, after=lock.unlink))  # type: ignore[arg-type]
    with pytest.raises(LeaseLost):
        list(run.segments())
    assert view.journal(0).entries() == []


def test_nothing_is_asked_while_the_lease_cannot_be_renewed(
    planned: tuple[RoundView, list[ListPart]], monkeypatch: pytest.MonkeyPatch
) -> None:
    view, given = planned
    origin = Origin(3, after=lambda: away.append(SystemClock().now()))
    away: list[float] = []
    real = LockLease.holds

    def holds(lease: LockLease, now_monotonic: float, request_seconds: float) -> bool:
        is_away = bool(away) and SystemClock().now() < away[0] + 2
        return real(lease, now_monotonic, request_seconds) and (not is_away or request_seconds == 0.0)

    monkeypatch.setattr(LockLease, "holds", holds)
    segments = list(ShardRun(view, 0, given, fetcher=origin).segments())  # type: ignore[arg-type]
    assert len(segments) == 1 and len(origin.log) == 8
    started = [at for _, _, at in origin.log]
    assert [at for at in started if away[0] + 0.1 < at < away[0] + 2] == []
