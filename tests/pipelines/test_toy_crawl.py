"""Three rounds over the toy web: what came out, held against the web's own truth and the access log."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise

import pytest
from warcio.archiveiterator import ArchiveIterator
from warcio.checker import Checker

from tests.pipelines.conftest import DELAY_SECONDS, ToyCrawl


def manifest(crawl: ToyCrawl, number: int) -> dict:
    return json.loads((crawl.folder / f"rounds/{number:06d}/manifest.json").read_text())


def pages(crawl: ToyCrawl) -> set[str]:
    return {url for (url,) in crawl.rows("SELECT url FROM {pages}")}


def test_outcomes_add_up_to_the_plan(toy_crawl: ToyCrawl) -> None:
    for number in (1, 2, 3):
        document = manifest(toy_crawl, number)
        total = sum(count for reasons in document["outcomes"].values() for count in reasons.values())
        assert document["planned"] == total > 0
    planned = toy_crawl.rows(
        "SELECT round::INT, count(*) FROM {captures} WHERE kind='planned' GROUP BY 1 ORDER BY 1"
    )
    assert planned == [(n, manifest(toy_crawl, n)["planned"]) for n in (1, 2, 3)]


def test_every_warc_file_passes_warcio_check(toy_crawl: ToyCrawl) -> None:
    files = sorted(toy_crawl.folder.glob("warc/*/*/*.warc.gz"))
    assert len(files) >= 7
    for path in files:
        checker = Checker(type("Options", (), {"inputs": [str(path)], "verbose": False})())
        assert checker.process_all() == 0, path


def test_each_page_says_where_it_was_found_in_which_charset_with_how_many_links(toy_crawl: ToyCrawl) -> None:
    found: dict[str, dict[str, str]] = {}
    for path in toy_crawl.folder.glob("warc/*/warc/*.warc.gz"):
        with path.open("rb") as file:
            for record in ArchiveIterator(file):
                if record.rec_type == "metadata":
                    lines = record.content_stream().read().decode().split("\r\n")
                    url = record.rec_headers.get_header("WARC-Target-URI")
                    found[url] = dict(line.split(": ", 1) for line in lines if line)
    rows = toy_crawl.rows("SELECT url, charset, len(links), discovered_from, redirected_from FROM {pages}")
    assert {url for url, *_ in rows} <= set(found)
    for url, charset, links, discovered_from, redirected_from in rows:
        facts = found[url]
        assert facts.get("charset-detected") == (None if url.endswith("/empty") else charset)
        assert int(facts.get("outlinks", "0")) >= links
        if redirected_from is None:
            assert facts.get("via") == discovered_from
        else:
            assert facts["via"].startswith("http")
    assert sum(int(facts.get("outlinks", "0")) for facts in found.values()) > 50


def test_every_reachable_page_is_there_once_and_copies_are_known(toy_crawl: ToyCrawl) -> None:
    found = toy_crawl.rows("SELECT url, count(*) FROM {pages} GROUP BY 1 HAVING count(*) > 1")
    assert found == []
    kept = pages(toy_crawl)
    lost = {url for (url,) in toy_crawl.rows("SELECT url FROM {duplicates}")}
    for cluster in toy_crawl.web.clusters():
        assert len(cluster & kept) == 1, cluster
        assert cluster - kept <= lost
    hidden = {url for url in toy_crawl.web.pages if url.endswith(("noindex", "/never", "/private"))}
    unreachable = {"http://www.robots-deny.example/public.html", "http://www.robots-503.example/"}
    unreachable |= {url for url in toy_crawl.web.pages if "www.robots-deny.example" in url}
    expected = set(toy_crawl.web.pages) - hidden - unreachable - lost
    assert expected - kept == set()


def test_each_duplicate_names_the_page_that_was_kept(toy_crawl: ToyCrawl) -> None:
    rows = toy_crawl.rows("SELECT url, kept_url, kind, similarity FROM {duplicates}")
    kept = pages(toy_crawl)
    assert {kind for _, _, kind, _ in rows} == {"exact", "near"}
    for url, kept_url, kind, similarity in rows:
        assert kept_url in kept and url not in kept
        assert similarity == 1.0 if kind == "exact" else 0.8 <= similarity <= 1.0


def test_no_host_is_asked_too_soon_or_twice_at_once(toy_crawl: ToyCrawl) -> None:
    by_host = defaultdict(list)
    for access in toy_crawl.log:
        by_host[access.host].append(access)
    assert len(by_host) > 15
    for host, accesses in by_host.items():
        delay = 0.3 if host == "www.robots-private.example" else DELAY_SECONDS
        for earlier, later in pairwise(accesses):
            if earlier.path == "/robots.txt" and host == "www.robots-private.example":
                continue
            assert later.arrived_at - earlier.ended_at >= delay - 0.005, (earlier, later)


def test_nothing_that_robots_txt_forbids_is_asked(toy_crawl: ToyCrawl) -> None:
    asked = {f"http://{access.host}{access.path}" for access in toy_crawl.log}
    assert asked & toy_crawl.web.denied() == {"http://www.robots-named.example/private"} & asked
    first = {}
    for access in toy_crawl.log:
        first.setdefault(access.host, access.path)
    assert set(first.values()) == {"/robots.txt"}


def test_the_user_agent_names_the_product(toy_crawl: ToyCrawl) -> None:
    assert {access.agent for access in toy_crawl.log} == {"roundcrawl/0.1"}


def test_no_url_is_fetched_twice(toy_crawl: ToyCrawl) -> None:
    counts = defaultdict(int)
    for access in toy_crawl.server.log[: toy_crawl.first_requests]:
        if access.path != "/robots.txt" and access.status in (200, 404, 410):
            counts[access.host, access.path] += 1
    assert [key for key, count in counts.items() if count > 1] == []


@pytest.mark.parametrize(
    ("path", "outcome", "reason"),
    [
        ("http://www.trouble.example/gone", "gone", "http_410"),
        ("http://www.trouble.example/error", "failed_retry", "http_500"),
        ("http://www.trouble.example/busy", "failed_retry", "http_408"),
        ("http://www.busy.example/", "failed_retry", "http_503"),
        ("http://www.trouble.example/noindex", "excluded", "noindex"),
        ("http://www.trouble.example/binary", "excluded", "unsupported_type"),
        ("http://www.robots-deny.example/", "robots_denied", "robots_rule"),
        ("http://www.robots-503.example/", "deferred", "robots_unreachable"),
        ("http://www.moved.example/old", "redirected", "redirect_followed"),
        ("http://www.moved.example/away", "redirected", "redirect_queued"),
        ("http://www.session.example/item.html", "fetched", None),
    ],
)
def test_outcome_of_each_kind(toy_crawl: ToyCrawl, path: str, outcome: str, reason: str | None) -> None:
    rows = toy_crawl.rows(
        f"SELECT DISTINCT outcome, reason FROM {{captures}} WHERE kind='planned' AND url = '{path}'"
    )
    assert rows == [(outcome, reason)]


def test_a_body_over_the_cap_is_kept_and_marked(toy_crawl: ToyCrawl) -> None:
    rows = toy_crawl.rows(
        "SELECT outcome, content_truncated FROM {captures} WHERE url = 'http://www.trouble.example/big'"
    )
    assert rows == [("fetched", "length")]


def test_a_third_run_with_nothing_due_says_when(toy_crawl: ToyCrawl) -> None:
    before = len(toy_crawl.server.log)
    assert toy_crawl.run_round("--as_of=2020-01-01T00:00:00Z") == 0
    assert toy_crawl.printed[-1].startswith("next due: 20")
    assert len(toy_crawl.server.log) == before
