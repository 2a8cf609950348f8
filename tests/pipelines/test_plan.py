"""`pipelines.plan`: what it says of the next round is what the round then does; and it changes nothing."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connectors.clock import SystemClock
from connectors.rounds import CrawlFolder
from pipelines import plan as command
from runners.options import UsageError
from schemas.flags import CrawlFlags
from tests.fakes.round_process import RoundProcess
from tests.fakes.toy_server import Access, serve
from tests.pipelines.conftest import ToyCrawl, give, manifest, outcomes, small_web, story
from transforms import planning

BIG, SLOW, SMALL, NEVER = "big.example", "slow.example", "small.example", "never.example"
PAGES = {BIG: 7, SLOW: 3, SMALL: 2}
DELAY_SECONDS = 2.0
FLAGS = (f"--min_delay_seconds={DELAY_SECONDS}", "--host_round_urls=5")
MEMBERS = {
    "urls",
    "hosts",
    "shards",
    "predicted_seconds",
    "predicted_bytes",
    "slowest_hosts",
    "left_out",
}


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToyCrawl]:
    """Return a crawl after one round, which found pages on three hosts."""
    pages = {}
    for host, count in PAGES.items():
        links = [f"http://{host}/{n}" for n in range(count)]
        pages |= {link: (story(f"{host[:3]}{n}of"), []) for n, link in enumerate(links)}
        pages[f"http://{host}/"] = (story(host[:3]), [*links, f"http://{host}/private"])
        pages |= {f"http://{host}/{name}": (story(host[:3] + name), []) for name in ("first", "second")}
    rules = {
        SLOW: "User-agent: *\nDisallow: /private\nCrawl-delay: 3\n",
        BIG: "User-agent: *\nDisallow: /private\n",
    }
    folder = tmp_path_factory.mktemp("plan")
    with serve(small_web(pages, rules)) as server:
        made = ToyCrawl(folder / "crawl", server.web, server, [])
        seeds = [f"http://{host}/{name}" for host in PAGES for name in ("", "first", "second")]
        give(made, "--salt=plan", *seeds)
        assert made.run_round() == 0
        yield made


def said(crawl: ToyCrawl, *more: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert command.main([flag for flag in crawl.round_flags(*more) if "runner" not in flag]) == 0
    return out.getvalue()


def planned(crawl: ToyCrawl, *more: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(said(crawl, "--json", *more))
    assert document.keys() >= MEMBERS
    return document


def files(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(p): (p.stat().st_size, p.stat().st_mtime_ns) for p in folder.rglob("*")}


def span_seconds(log: list[Access]) -> float:
    return max(access.ended_at for access in log) - min(access.arrived_at for access in log)


def test_nothing_is_written_and_nothing_asked(crawl: ToyCrawl) -> None:
    before, asked = files(crawl.folder), len(crawl.server.log)
    documents = [planned(crawl, *FLAGS) for _ in range(2)]
    said(crawl)
    assert files(crawl.folder) == before
    assert len(crawl.server.log) == asked
    assert {d["urls"] for d in documents} == {12}, "a plan made again is the same plan"
    assert documents[0]["left_out"] == documents[1]["left_out"] == {"host_budget": 3}


def test_each_budget_is_counted_by_its_name(crawl: ToyCrawl) -> None:
    everything = planned(crawl)
    assert (everything["urls"], everything["hosts"], everything["left_out"]) == (15, 3, {})
    assert (everything["round"], everything["unfinished"], everything["urls_done"]) == (2, False, 0)
    assert planned(crawl, "--round_urls=4")["left_out"] == {"round_budget": 11}
    assert planned(crawl, "--domain_round_urls=2")["left_out"] == {"domain_budget": 9}
    assert planned(crawl, "--host_total_urls=5")["left_out"] == {"host_budget": 9}
    both = planned(crawl, "--host_round_urls=2", "--round_urls=5", "--shards=2")
    assert both["left_out"] == {"host_budget": 9, "round_budget": 1}
    assert sum(shard["urls"] for shard in both["shards"]) == both["urls"] == 5
    assert [shard["shard"] for shard in both["shards"]] == [0, 1]
    loads = [shard["load_seconds"] for shard in planned(crawl, *FLAGS, "--shards=2")["shards"]]
    assert max(loads) < 0.6 * sum(loads), "hosts behind a --connect_to target share no address"


def test_a_crawl_delay_known_from_robots_txt_counts(crawl: ToyCrawl) -> None:
    slowest = planned(crawl, "--min_delay_seconds=0.1")["slowest_hosts"]
    assert [host["host"] for host in slowest] == [SLOW, BIG, SMALL]
    # Three pages with two pauses between; the fourth URL is denied and never asked for.
    assert slowest[0]["urls"] == 3
    assert 6.0 <= slowest[0]["seconds"] < 9.0


def test_people_read_the_same_figures(crawl: ToyCrawl) -> None:
    lines = said(crawl, *FLAGS).splitlines()
    assert lines[0].startswith("round 2: 12 URLs of 3 hosts, about ")
    assert lines[1].startswith("  shard 0: 12 URLs, 3 hosts, ")
    assert lines[2:4] == ["  left out: host_budget 3", "  slowest hosts:"]
    assert lines[4].startswith(f"    {BIG}: 5 URLs, ")


def test_as_of_decides_what_is_due(crawl: ToyCrawl) -> None:
    early = planned(crawl, "--as_of=2020-01-01T00:00:00Z")
    assert (early["urls"], early["shards"], early["predicted_seconds"]) == (0, [], 0.0)
    assert early["next_due"].startswith("20")
    assert said(crawl, "--as_of=2020-01-01T00:00:00Z").startswith("nothing is due; next due: 20")
    # Years later, the three seeds of each host are due again as well.
    assert planned(crawl, "--as_of=2030-01-01T00:00:00Z")["urls"] == 15 + 9


def test_an_unfinished_round_is_what_is_shown(crawl: ToyCrawl, tmp_path: Path) -> None:
    copy = ToyCrawl(tmp_path / "copy", crawl.web, crawl.server, [])
    shutil.copytree(crawl.folder, copy.folder)
    folder = CrawlFolder.at(str(copy.folder))
    view, plan = command.plan_of(folder, CrawlFlags(round_urls=6, min_delay_seconds=0.1), None)
    assert plan is not None
    planning.commit_plan(view, plan)
    document = planned(copy, "--round_urls=3")
    assert (document["round"], document["unfinished"], document["urls"]) == (2, True, 6)
    assert document["left_out"] == {"round_budget": 9}
    assert said(copy).startswith("round 2: 6 URLs of 3 hosts (unfinished: 0 are done), about ")


def test_of_a_stopped_round_the_rest_is_predicted(crawl: ToyCrawl, tmp_path: Path) -> None:
    copy = ToyCrawl(tmp_path / "copy", crawl.web, crawl.server, [])
    shutil.copytree(crawl.folder, copy.folder)
    flags, before = ("--min_delay_seconds=0.7",), len(crawl.server.log)
    whole = planned(copy, *flags)
    with RoundProcess(copy.round_flags(*flags), tmp_path / "round.log") as process:
        while len(crawl.server.log) < before + 5:
            assert process.is_running, process.printed
            SystemClock().wait(0.02)
        process.signal(signal.SIGTERM)
        assert process.end() == 1, process.printed
    asked = [access for access in crawl.server.log[before:] if access.path != "/robots.txt"]
    rest = planned(copy)
    assert (rest["unfinished"], rest["urls"]) == (True, whole["urls"])
    # The URLs that robots.txt denies are done as soon as their turn comes.
    assert len(asked) <= rest["urls_done"] <= len(asked) + 2
    assert rest["predicted_seconds"] < whole["predicted_seconds"]
    assert f"(unfinished: {rest['urls_done']} are done)" in said(copy)


def test_what_cannot_be_planned_is_one_line(crawl: ToyCrawl, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no crawl"):
        command.main([f"--crawl={tmp_path}/nowhere"])
    with pytest.raises(UsageError, match="round_minutes"):
        command.main([f"--crawl={crawl.folder}", "--round_minutes=0"])
    assert not (tmp_path / "nowhere").exists()


def test_the_round_takes_as_long_as_was_predicted(crawl: ToyCrawl) -> None:
    document = planned(crawl, *FLAGS)
    began = len(crawl.log)
    assert crawl.run_round(*FLAGS) == 0
    asked = crawl.log[began:]
    assert len(outcomes(crawl, 2)) == document["urls"] == manifest(crawl, 2)["planned"]
    assert manifest(crawl, 2)["left_out"] == document["left_out"]
    assert document["predicted_seconds"] == pytest.approx(span_seconds(asked), rel=0.1)
    assert document["predicted_bytes"] == pytest.approx(
        manifest(crawl, 2)["counters"]["bytes_fetched"], rel=0.3
    )
