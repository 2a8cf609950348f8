"""What the origin's log shows of pauses, deadlines and exclusions, over rounds and restarts of the process."""

from __future__ import annotations

import contextlib
import io
import json
from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import pytest

from connectors.clock import SystemClock
from pipelines import audit
from pipelines import plan as plan_command
from tests.fakes.round_process import RoundProcess
from tests.fakes.toy_server import Access
from tests.fakes.toy_web import Reply
from tests.pipelines.conftest import Make, ToyCrawl, give, manifest, outcomes, story

# The server shares a machine with the crawler: its clock readings come a little late now and then.
SLACK_SECONDS = 0.01


def site(host: str, names: Iterable[object], text: str) -> dict[str, tuple[str, list[str]]]:
    """Return pages of a host, each linking to the next."""
    urls = [f"http://{host}/{name}" for name in names]
    following: list[list[str]] = [[url] for url in urls[1:]] + [[]]
    return {
        url: (story(f"{text}{n}x"), links) for n, (url, links) in enumerate(zip(urls, following, strict=True))
    }


def gaps(log: Iterable[Access]) -> dict[str, list[float]]:
    """Return the seconds between the end of each request and the start of the next, for each host."""
    by_host: dict[str, list[Access]] = defaultdict(list)
    for access in log:
        by_host[access.host].append(access)
    return {
        host: [later.arrived_at - earlier.ended_at for earlier, later in pairwise(accesses)]
        for host, accesses in by_host.items()
    }


def run_process(crawl: ToyCrawl, tmp_path: Path, *flags: str) -> None:
    """Run a round in a process of its own."""
    with RoundProcess(crawl.round_flags(*flags), tmp_path / "round.log") as process:
        assert process.end() == 0, process.printed


def wait_for(crawl: ToyCrawl, process: RoundProcess, host: str, count: int) -> None:
    """Wait until the server has seen so many requests to a host."""
    clock = SystemClock()
    while sum(access.host == host for access in list(crawl.server.log)) < count:
        assert process.is_running, process.printed
        clock.wait(0.02)


@pytest.mark.timeout(400)
def test_no_pause_is_cut_short_by_rounds_or_restarts(make: Make, tmp_path: Path) -> None:
    plain, asks, busy = "plain.example", "asks.example", "busy.example"
    pages = site(plain, ["", 1, 2], "plain") | site(asks, ["", 1, 2], "asks")
    pages[f"http://{plain}/"][1].append(f"http://{busy}/other")
    rules = {asks: "User-agent: *\nCrawl-delay: 4\n"}
    crawl = make(pages, *(f"http://{host}/" for host in (plain, asks, busy)), robots=rules)
    crawl.web.replies[f"http://{busy}/"] = Reply(503, b"busy", headers=(("Retry-After", "900"),))
    flags = ("--round_minutes=1", "--host_round_urls=1")
    started_at = SystemClock().now()
    run_process(crawl, tmp_path, "--min_delay_seconds=2", *flags)
    # A pause that outlasts the end of one process and the start of the next, whatever keeps this machine busy.
    pause = 3 + SystemClock().now() - started_at - (crawl.log[-1].ended_at - crawl.log[0].arrived_at)
    for _ in range(2):
        run_process(crawl, tmp_path, f"--min_delay_seconds={pause}", *flags)
    found = gaps(crawl.log)
    assert len(found[plain]) == len(found[asks]) == 3
    assert found[plain][0] >= 2 - SLACK_SECONDS and min(found[plain][1:]) >= pause - SLACK_SECONDS
    assert min(found[asks][1:]) >= max(4.0, pause) - SLACK_SECONDS
    assert [access.path for access in crawl.log if access.host == busy] == ["/robots.txt", "/"]
    left = [manifest(crawl, number)["left_out"].get("host_backoff", 0) for number in (1, 2, 3)]
    assert left == [0, 1, 1], "after its Retry-After the host is left alone, in later rounds too"
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert audit.main([f"--crawl={crawl.folder}"]) == 0, out.getvalue()


def test_a_host_that_asks_for_more_than_the_longest_pause_gets_few_requests(make: Make) -> None:
    pages = {f"http://slow.example/{n}": (story(f"slow{n}x"), []) for n in range(14)}
    crawl = make(pages, *pages, robots={"slow.example": "User-agent: *\nCrawl-delay: 0.3\n"})
    assert crawl.run_round("--max_crawl_delay_seconds=0.2", "--rounds=2") == 0
    first = list(outcomes(crawl, 1).values())
    assert first.count(("fetched", None)) == 10
    assert first.count(("deferred", "crawl_delay")) == 4
    assert list(outcomes(crawl, 2).values()) == [("fetched", None)] * 4
    pauses = gaps(crawl.log)["slow.example"]
    assert len(pauses) == 14 and min(pauses[1:]) >= 0.3 - SLACK_SECONDS


def test_a_round_ends_at_its_deadline_and_what_is_left_is_due_at_once(make: Make) -> None:
    hosts, timeout_seconds = [f"h{n}.example" for n in range(3)], 3.0
    pages = {f"http://{host}/{n}": (story(f"{host[:2]}p{n}x"), []) for host in hosts for n in range(12)}
    crawl = make(pages, *pages)
    for url in pages:
        crawl.web.replies[url] = Reply(200, b"a page without an end" * 9, seconds=40.0)
    limits = (f"--fetch_timeout_seconds={timeout_seconds}", f"--read_timeout_seconds={timeout_seconds}")
    assert crawl.run_round("--round_minutes=0.2", *limits) == 0
    plan = json.loads((crawl.folder / "rounds/000001/plan.json").read_text())
    deadline_at = plan["planned_at"] + plan["round_seconds"]
    assert max(access.arrived_at for access in crawl.log) < deadline_at + 0.5
    assert max(access.ended_at for access in crawl.log) < deadline_at + timeout_seconds + 0.5
    ends = crawl.rows("SELECT max(epoch(finished_at)), max(epoch(started_at)) FROM {captures}")
    assert ends[0][1] < deadline_at and ends[0][0] < deadline_at + timeout_seconds + 0.5
    found = outcomes(crawl, 1)
    left = [
        url for url, (outcome, reason) in found.items() if (outcome, reason) == ("deferred", "round_deadline")
    ]
    assert len(left) > 18
    assert {outcome for outcome, _ in found.values()} <= {"deferred", "failed_retry"}
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert plan_command.main([f"--crawl={crawl.folder}", "--min_delay_seconds=0", "--json"]) == 0
    document = json.loads(out.getvalue())
    assert document["urls"] == len(left) + sum(manifest(crawl, 1)["left_out"].values())


@pytest.mark.timeout(300)
def test_an_exclusion_stops_a_running_round_within_a_checkpoint(make: Make, tmp_path: Path) -> None:
    angry, other, checkpoint_seconds = "angry.example", "www.angry.example", 2.0
    pages = {f"http://{angry}/{n}": (story(f"angry{n}x"), []) for n in range(60)}
    pages |= {f"http://{other}/{n}": (story(f"other{n}x"), []) for n in range(60)}
    pages |= {f"http://calm.example/{n}": (story(f"calm{n}x"), []) for n in range(12)}
    crawl = make(pages, *pages)
    policy = tmp_path / "policy.yaml"
    policy.write_text(f"domains:\n  {angry}: {{exclude: true}}\n")
    flags = crawl.round_flags("--min_delay_seconds=0.4", f"--checkpoint_seconds={checkpoint_seconds}")
    with RoundProcess(flags, tmp_path / "round.log") as process:
        wait_for(crawl, process, angry, 4)
        give(crawl, f"--policy={policy}")
        told_at = SystemClock().now()
        assert process.end() == 0, process.printed
    late = [a for a in crawl.log if a.host.endswith(angry) and a.arrived_at > told_at + checkpoint_seconds]
    assert late == []
    found = outcomes(crawl, 1)
    assert set(found) == set(pages)
    for host in (angry, other):
        ends = [found[url] for url in pages if url.startswith(f"http://{host}/")]
        asked = sum(access.host == host and access.path != "/robots.txt" for access in crawl.log)
        assert ends.count(("fetched", None)) == asked
        assert ends.count(("excluded", "excluded")) == 60 - asked > 30
    calm = [found[url] for url in pages if "calm" in url]
    assert calm == [("fetched", None)] * 12
    before = len(crawl.server.log)
    assert crawl.run_round("--as_of=2030-01-01T00:00:00Z") == 0
    assert {access.host for access in crawl.server.log[before:]} <= {"calm.example"}
