"""When pages are visited again: after failures and denials, conditionally, and at the price that the rounds allow."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import pytest

from connectors.clock import SystemClock
from connectors.rounds import CrawlFolder
from crawler.recrawl import RecrawlPolicy
from crawler.urls import UrlKeys, partition_of
from pipelines.plan import plan_of
from schemas.flags import CrawlFlags
from schemas.state import HostState
from tests.fakes.toy_server import serve
from tests.fakes.toy_web import Reply
from tests.pipelines.conftest import ToyCrawl, give, in_days, manifest, outcomes, small_web, story
from transforms.revisits import recrawl_policy
from transforms.state_tables import HOSTS, known_hosts

FAILS, DENIED, PLAIN = "http://fails.example/", "http://denied.example/", "http://plain.example/"
TAGGED, DATED = "http://etag.tagged.example/", "http://dated.example/"
FOUND = f"{PLAIN}found"
DAY = 86_400.0
ROBOTS_TTL_SECONDS = 12.0


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToyCrawl]:
    """Return a crawl of three rounds in a season, in which the web changes."""
    pages = {
        url: (story(name), [])
        for url, name in ((TAGGED, "tagged"), (DATED, "dated"), (FOUND, "found"), (DENIED, "denied"))
    }
    pages[PLAIN] = (story("plain"), [FOUND])
    web = small_web(pages, {"denied.example": "User-agent: *\nDisallow: /\n"})
    web.replies[FAILS] = Reply(500, b"oops")
    ttl = f"--robots_ttl_hours={ROBOTS_TTL_SECONDS / 3600}"
    with serve(web) as server, pytest.MonkeyPatch.context() as patch:
        # An answer stands for five minutes at the least, which no test can wait for.
        patch.setattr("crawler.robots.MIN_ERROR_TTL_SECONDS", 0.0)
        made = ToyCrawl(tmp_path_factory.mktemp("recrawl") / "crawl", web, server, [])
        give(made, "--salt=recrawl", FAILS, DENIED, PLAIN, TAGGED, DATED)
        assert made.run_round(in_days(0), "--max_retries=1", ttl) == 0
        web.robots["denied.example"] = Reply(200, b"User-agent: *\nDisallow: /private\n", "text/plain")
        web.pages[PLAIN].text = story("fresh")
        SystemClock().wait(max(0.0, made.log[-1].ended_at + ROBOTS_TTL_SECONDS - SystemClock().now()))
        assert made.run_round(in_days(2), "--max_retries=1", ttl) == 0
        web.replies[FAILS] = Reply(200, b"<title>Back</title><p>" + story("back").encode())
        assert made.run_round(in_days(120), "--max_retries=1") == 0
        yield made


def days_until_next(crawl: ToyCrawl, number: int, url: str) -> float:
    rows = crawl.rows(
        "SELECT epoch(next_fetch_at) FROM {captures} WHERE kind = 'planned' "
        f"AND round::INT = {number} AND url = '{url}'"
    )
    return (rows[0][0] - datetime.fromisoformat(manifest(crawl, number)["as_of"]).timestamp()) / DAY


def host_states(crawl: ToyCrawl) -> dict[str, HostState]:
    """Return what the newest round knows of its hosts."""
    folder, keys = CrawlFolder.at(str(crawl.folder)), UrlKeys("recrawl")
    entries = [entry for entry in folder.newest_manifest().files if entry.table == HOSTS.name]
    found: dict[str, HostState] = {}
    for host in crawl.web.hosts():
        key = keys.host_key(host)
        own = [
            entry for entry in entries if entry.partition == partition_of(key, folder.identity().partitions)
        ]
        found[host] = known_hosts(folder.storage, own, [key])[key]
    return found


def test_failures_back_off_and_the_last_one_is_gone_but_not_forgotten(crawl: ToyCrawl) -> None:
    assert outcomes(crawl, 1)[FAILS] == ("failed_retry", "http_500")
    assert 0.8 <= days_until_next(crawl, 1, FAILS) <= 1.2
    assert outcomes(crawl, 2)[FAILS] == ("gone", "http_500")
    assert 72 <= days_until_next(crawl, 2, FAILS) <= 108, "the longest interval"
    assert outcomes(crawl, 3)[FAILS] == ("fetched", None)


def test_a_denied_url_is_looked_at_again_when_its_robots_txt_has_changed(crawl: ToyCrawl) -> None:
    assert outcomes(crawl, 1)[DENIED] == ("robots_denied", "robots_rule")
    asked = [access.path for access in crawl.log if access.host == "denied.example"]
    assert asked[:3] == ["/robots.txt", "/robots.txt", "/"]
    assert outcomes(crawl, 2)[DENIED] == ("fetched", None)
    rules = crawl.rows(f"SELECT robots_rule FROM {{captures}} WHERE url = '{DENIED}' ORDER BY round")
    assert rules[0] == ("Disallow: /",) and set(rules[1:]) == {(None,)}


def test_unchanged_pages_are_asked_for_with_what_the_server_said_of_them(crawl: ToyCrawl) -> None:
    assert outcomes(crawl, 3)[TAGGED] == outcomes(crawl, 3)[DATED] == ("not_modified", "http_304")
    answered = {(access.host, access.status) for access in crawl.log}
    assert {("etag.tagged.example", 304), ("dated.example", 304)} <= answered


def test_urls_count_once_among_those_asked_however_often_they_are(crawl: ToyCrawl) -> None:
    states = host_states(crawl)
    counts = {host: (state.urls_known, state.fetched_total) for host, state in states.items()}
    assert counts == {
        "fails.example": (1, 1),
        "denied.example": (1, 1),
        "plain.example": (2, 2),
        "etag.tagged.example": (1, 1),
        "dated.example": (1, 1),
    }
    first = [manifest(crawl, number)["counters"].get("urls_first_asked", 0) for number in (1, 2, 3)]
    assert first == [4, 2, 0], "the denied one counts when it is asked at last"


def test_pages_in_good_order_are_counted_and_price_the_next_visits(crawl: ToyCrawl) -> None:
    cells = [manifest(crawl, number)["revisit_cells"] for number in (1, 2, 3)]
    assert [sum(counted.values()) for counted in cells] == [3, 5, 6]
    assert all(count > 0 for counted in cells for count in counted.values())
    assert manifest(crawl, 1)["round_interval_seconds"] is None
    assert manifest(crawl, 3)["round_interval_seconds"] == pytest.approx(60 * DAY, rel=0.05)
    fixed = RecrawlPolicy().price_seconds
    for round_urls, is_raised in ((100_000, False), (2, True)):
        view, _ = plan_of(
            CrawlFolder.at(str(crawl.folder)), CrawlFlags(round_urls=round_urls), _as_of(crawl, 180)
        )
        price = recrawl_policy(view).price_seconds
        assert (price > 1.5 * fixed) if is_raised else price == fixed


def _as_of(crawl: ToyCrawl, days: int) -> float:
    return datetime.fromisoformat(in_days(days).partition("=")[2]).timestamp()
