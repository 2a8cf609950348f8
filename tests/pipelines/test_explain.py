"""`pipelines.explain` on the toy crawl: right for a URL of every kind, and for every URL that is known."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from connectors.rounds import CrawlFolder
from tests.pipelines.conftest import ToyCrawl
from tests.pipelines.explaining import HUB, TROUBLE, asked, body_at, known_states, told
from transforms.explaining import explain


@pytest.fixture(scope="module")
def documents(toy_crawl: ToyCrawl) -> dict[str, dict[str, Any]]:
    """Return the explanation of every URL that the crawl knows, instants as datetimes."""
    folder = CrawlFolder.at(str(toy_crawl.folder))
    now = datetime.now(UTC).timestamp()
    return {state.url: explain(folder, state.url, now) for state in known_states(folder)}


def test_it_is_right_for_one_url_of_each_outcome_and_reason(toy_crawl: ToyCrawl) -> None:
    rows = toy_crawl.rows(
        "SELECT round::INT, kind, outcome, reason, detail, min(url) FROM {captures} "
        "WHERE kind <> 'robots' GROUP BY ALL ORDER BY ALL"
    )
    assert {outcome for _, _, outcome, *_ in rows} >= {
        *("fetched", "redirected", "duplicate", "robots_denied", "excluded"),
        *("failed_retry", "gone", "deferred"),
    }
    for number, kind, outcome, reason, detail, url in rows:
        document = asked(toy_crawl, url)
        assert document["known"] and document["url"] == url
        (entry,) = [entry for entry in document["rounds"] if entry["round"] == number]
        assert (entry["kind"], entry["outcome"], entry["reason"]) == (kind, outcome, reason)
        assert entry["detail"] == detail
        last = max(entry["round"] for entry in document["rounds"])
        if number == last:
            assert (document["outcome"], document["reason"]) == (outcome, reason)


def test_the_sum_of_reasons_is_the_number_of_known_urls(
    toy_crawl: ToyCrawl, documents: dict[str, dict[str, Any]]
) -> None:
    assert all(document["known"] for document in documents.values())
    counted = Counter((document["outcome"], document["reason"]) for document in documents.values())
    last = toy_crawl.rows(
        "SELECT outcome, reason, count(*) FROM (SELECT url, arg_max(outcome, round) AS outcome, "
        "arg_max(coalesce(reason, ''), round) AS reason FROM {captures} WHERE kind <> 'robots' GROUP BY url) "
        "GROUP BY ALL"
    )
    decided = {(outcome, reason or None): count for outcome, reason, count in last}
    waiting = {key: count for key, count in counted.items() if key[0] is None}
    assert counted == Counter(decided) + Counter(waiting)
    assert set(waiting) == {(None, "due")}
    manifest = CrawlFolder.at(str(toy_crawl.folder)).newest_manifest()
    assert manifest is not None
    seen = sum(entry.rows for entry in manifest.files if entry.table == "seen")
    assert counted.total() == len(documents) == seen


def test_next_dates_are_those_of_the_calendar_and_of_captures(
    toy_crawl: ToyCrawl, documents: dict[str, dict[str, Any]]
) -> None:
    dates = dict(
        toy_crawl.rows(
            "SELECT url, arg_max(epoch_us(next_fetch_at), round) FROM {captures} WHERE kind <> 'robots' GROUP BY 1"
        )
    )
    for state in known_states(CrawlFolder.at(str(toy_crawl.folder))):
        document = documents[state.url]
        assert document["next_fetch_at"] == document["next"]["at"]
        found = document["next_fetch_at"] - datetime.fromtimestamp(0, UTC)
        assert found // timedelta(microseconds=1) == dates.get(state.url, round(state.next_fetch_at * 1e6))
        assert document["next"]["why"]


def test_every_chain_leads_back_to_a_seed_over_real_links(
    toy_crawl: ToyCrawl, documents: dict[str, dict[str, Any]]
) -> None:
    links = set(toy_crawl.rows("SELECT source_url, target_url FROM {links}"))
    redirects = dict(
        toy_crawl.rows("SELECT url, fetch_redirect FROM {captures} WHERE fetch_redirect IS NOT NULL")
    )
    followed = {(source, target) for source in redirects for target in _reached(source, redirects)}
    for url, document in documents.items():
        steps = [url, *document["chain"]]
        assert steps[-1] in toy_crawl.web.seeds()
        for target, source in pairwise(steps):
            assert (source, target) in links | followed, (source, target)
        assert document["discovered_from"] == (document["chain"] or [None])[0]
        assert document["found"]["is_seed"] == (not document["chain"])


def _reached(url: str, redirects: dict[str, str]) -> set[str]:
    reached: set[str] = set()
    while (url := redirects.get(url, "")) and url not in reached:
        reached.add(url)
    return reached


def test_a_denial_names_the_line_and_the_robots_txt_that_held_it(toy_crawl: ToyCrawl) -> None:
    denied = {
        "http://www.robots-private.example/private": "Disallow: /private",
        "http://www.robots-deny.example/": "Disallow: /",
        "http://www.robots-named.example/private": "Disallow: /private",
        "http://www.robots-wild.example/private": "Disallow: /*private$",
    }
    for url, line in denied.items():
        document = asked(toy_crawl, url)
        entry = document["rounds"][-1]
        assert entry["robots_rule"] == line
        assert entry["robots"]["url"] == url[: url.index("/", 7)] + "/robots.txt"
        assert line.encode() in body_at(toy_crawl, entry["robots"])
        assert entry["robots"]["fetched_at"] <= entry["next_fetch_at"]
        assert (document["robots"]["allowed"], document["robots"]["rule"]) == (False, line)
        assert document["next"]["robots_expires_at"] == document["robots"]["expires_at"]
        assert document["captures"] == []
    text = told(toy_crawl, "http://www.robots-private.example/private")
    assert "robots.txt says: Disallow: /private" in text
    assert "the copy in force forbids it" in text


@pytest.mark.parametrize(
    ("url", "access", "allowed"),
    [
        (HUB, "allow", True),
        ("http://www.robots-503.example/", "deny", False),
        ("http://www.robots-wild.example/public.html", "rules", True),
        ("http://www.robots-wild.example/never/private", "rules", False),
    ],
)
def test_the_copy_of_robots_txt_in_force_gives_its_verdict(
    toy_crawl: ToyCrawl, url: str, access: str, allowed: bool
) -> None:
    robots = asked(toy_crawl, url)["robots"]
    assert (robots["access"], robots["allowed"]) == (access, allowed)
    assert robots["fetched_at"] < robots["expires_at"]


def test_a_robots_txt_that_moved_is_followed_to_where_it_lies(toy_crawl: ToyCrawl) -> None:
    entry = asked(toy_crawl, "http://www.robots-moved.example/private")["rounds"][-1]
    assert entry["robots"]["url"] == "http://robots-moved.example/robots.txt"
    assert entry["robots"]["via"] == ["http://www.robots-moved.example/robots.txt"]
    assert b"Disallow: /private" in body_at(toy_crawl, entry["robots"])


def test_a_duplicate_names_the_page_that_was_kept(toy_crawl: ToyCrawl) -> None:
    rows = toy_crawl.rows("SELECT url, kept_url, kind, similarity FROM {duplicates}")
    assert {kind for _, _, kind, _ in rows} == {"exact", "near"}
    for url, kept_url, kind, similarity in rows:
        document = asked(toy_crawl, url)
        entry = next(entry for entry in document["rounds"] if entry["outcome"] == "duplicate")
        assert entry["duplicate"] == {"kept_url": kept_url, "kind": kind, "similarity": similarity}
        assert document["duplicate_chain"][-1]["in_pages"] is True
        assert document["duplicate_chain"][0]["url"] == kept_url


def test_captures_are_where_the_document_says(toy_crawl: ToyCrawl) -> None:
    document = asked(toy_crawl, f"{TROUBLE}gone")
    (capture,) = document["captures"]
    assert (capture["fetch_status"], capture["subset"]) == (410, "crawldiagnostics")
    assert body_at(toy_crawl, capture) == b"gone"
    assert {"round", "content_digest", "started_at"} <= capture.keys()


def test_a_redirect_names_its_target_and_a_hop_where_it_came_from(toy_crawl: ToyCrawl) -> None:
    moved = "http://www.moved.example/"
    assert asked(toy_crawl, f"{moved}chain-1")["rounds"][-1]["fetch_redirect"] == f"{moved}chain-2"
    end = asked(toy_crawl, f"{moved}chain-end")
    assert end["rounds"][-1]["kind"] == "hop"
    assert end["chain"][0] == f"{moved}chain-1"


@pytest.mark.parametrize(
    ("url", "words"),
    [
        (f"{TROUBLE}gone", "gone (http_410): looked for again after the longest interval, 90 days"),
        (f"{TROUBLE}noindex", "excluded (noindex): looked at again after the longest interval, 90 days"),
        (f"{TROUBLE}error", "failure 1 in a row (http_500), 5 are retried: again after 24 h"),
        (f"{TROUBLE}busy", "the host asked for a pause (http_408), which uses up no retry"),
        ("http://www.busy.example/", "the host asked for a pause (http_503), which uses up no retry"),
        ("http://www.robots-deny.example/", "robots.txt forbids it (time 1 in a row)"),
        (HUB, "one visit so far: an interval of"),
    ],
)
def test_the_next_date_has_a_reason(toy_crawl: ToyCrawl, url: str, words: str) -> None:
    assert asked(toy_crawl, url)["next"]["why"].startswith(words)
    assert words in told(toy_crawl, url)


def test_a_url_that_no_round_has_taken_yet_is_due(toy_crawl: ToyCrawl) -> None:
    found = toy_crawl.rows(
        "SELECT DISTINCT target_url, source_url FROM {links} WHERE round::INT = 3 AND rel = '' "
        "AND target_url LIKE '%calendar.example%' AND target_url NOT IN (SELECT url FROM {captures})"
    )
    ((url, source),) = found
    document = asked(toy_crawl, url)
    assert (document["known"], document["outcome"], document["reason"]) == (True, None, "due")
    assert (document["rounds"], document["discovered_from"]) == ([], source)
    assert document["next"]["is_due"] and document["next"]["why"].startswith("not fetched yet; due since")
    assert document["found"]["round"] == 3


def test_retries_and_recrawl_numbers_are_given(toy_crawl: ToyCrawl) -> None:
    error = asked(toy_crawl, f"{TROUBLE}error")["next"]
    assert (error["retries"], error["max_retries"], error["status"]) == (1, 5, "failing")
    hub = asked(toy_crawl, HUB)["next"]
    assert (hub["visits"], hub["changes"]) == (1, 0)
    wait = datetime.fromisoformat(hub["at"]) - datetime.fromisoformat(hub["last_visit_at"])
    assert wait.total_seconds() == pytest.approx(hub["interval_seconds"] * hub["jitter"], rel=1e-6)


def test_what_a_plan_weighed_is_given_while_its_files_last(toy_crawl: ToyCrawl) -> None:
    document = asked(toy_crawl, f"{TROUBLE}gone")
    plan = document["rounds"][-1]["plan"]
    assert plan["score"] == pytest.approx((0.5 + 0.05) / 3 * 2, rel=1e-3)
    assert 1 <= plan["host_place"] <= plan["host_urls_due"] <= plan["host_budget"]
    assert plan["host_delay_seconds"] == pytest.approx(0.1)
    assert document["rounds"][-1]["host_delay_seconds"] == pytest.approx(0.1)


def test_a_robots_txt_is_shown_though_it_is_no_page(toy_crawl: ToyCrawl) -> None:
    document = asked(toy_crawl, "http://www.robots-private.example/robots.txt")
    assert document["known"] is False
    assert [entry["kind"] for entry in document["rounds"]] == ["robots"]
    assert b"Crawl-delay" in body_at(toy_crawl, document["captures"][0])
