"""What the flags, the policy and a page's history make of later rounds."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from tests.pipelines.conftest import Make, give, in_days, manifest, outcomes, story

TEXT = story("tale")


def test_an_unchanged_page_is_not_parsed_and_not_a_page_again(make: Make) -> None:
    url, tagged = "http://one.example/", "http://etag.two.example/"
    crawl = make({url: (TEXT, []), tagged: (story("tagged"), [])}, url, tagged)
    assert crawl.run_round() == 0
    assert crawl.run_round(in_days(300)) == 0
    assert outcomes(crawl, 2) == {
        url: ("not_modified", "same_payload"),
        tagged: ("not_modified", "http_304"),
    }
    assert crawl.rows("SELECT count(*) FROM {pages}") == [(2,)]
    kinds = crawl.rows(
        "SELECT url, subset FROM {captures} WHERE round::INT = 2 AND kind = 'planned' ORDER BY 1"
    )
    assert kinds == [(tagged, "crawldiagnostics"), (url, "warc")]


def test_a_changed_page_is_a_page_again_and_says_so(make: Make) -> None:
    url = "http://one.example/"
    crawl = make({url: (TEXT, [])}, url)
    assert crawl.run_round() == 0
    crawl.web.pages[url].text = story("other")
    assert crawl.run_round(in_days(300)) == 0
    assert outcomes(crawl, 2) == {url: ("fetched", None)}
    assert crawl.rows("SELECT changed FROM {pages} ORDER BY round") == [(False,), (True,)]


def test_a_page_that_goes_away_is_removed_from_the_index(make: Make) -> None:
    url = "http://one.example/"
    crawl = make({url: (TEXT, [])}, url)
    assert crawl.run_round() == 0
    del crawl.web.pages[url]
    assert crawl.run_round(in_days(300)) == 0
    assert outcomes(crawl, 2) == {url: ("gone", "http_404")}
    assert crawl.rows("SELECT url, reason FROM {removed}") == [(url, "http_404")]


def test_when_the_kept_page_is_gone_its_copy_takes_its_place(make: Make) -> None:
    kept, copy = "http://a.example/", "http://b.example/"
    crawl = make({kept: (TEXT, []), copy: (TEXT, [])}, kept, copy)
    assert crawl.run_round() == 0
    assert outcomes(crawl, 1) == {kept: ("fetched", None), copy: ("duplicate", "exact_duplicate")}
    del crawl.web.pages[kept]
    assert crawl.run_round("--rounds=2", in_days(500)) == 0
    assert crawl.rows("SELECT url FROM {pages} ORDER BY round") == [(kept,), (copy,)]
    assert crawl.rows("SELECT url FROM {removed}") == [(kept,)]


def test_a_host_budget_leaves_the_rest_for_the_next_round(make: Make) -> None:
    pages = {f"http://one.example/{n}": (story(f"part{n}"), []) for n in range(5)}
    crawl = make(pages, *pages)
    assert crawl.run_round("--host_round_urls=2") == 0
    assert manifest(crawl, 1)["planned"] == 2
    assert manifest(crawl, 1)["left_out"] == {"host_budget": 3}
    assert crawl.run_round("--host_round_urls=10") == 0
    assert len(outcomes(crawl, 1) | outcomes(crawl, 2)) == 5


def test_a_round_budget_is_exact(make: Make) -> None:
    pages = {f"http://h{n}.example/": (story(f"host{n}"), []) for n in range(6)}
    crawl = make(pages, *pages)
    assert crawl.run_round("--round_urls=4", "--rounds=2") == 0
    assert [manifest(crawl, n)["planned"] for n in (1, 2)] == [4, 2]
    assert manifest(crawl, 1)["left_out"] == {"round_budget": 2}


def test_a_committed_run_id_is_not_run_again(make: Make) -> None:
    url = "http://one.example/"
    crawl = make({url: (TEXT, [])}, url)
    assert crawl.run_round("--run_id=monday") == 0
    before = len(crawl.server.log)
    assert crawl.run_round("--run_id=monday") == 0
    assert "already done" in crawl.printed[-1]
    assert len(crawl.server.log) == before
    assert manifest(crawl, 1)["run_id"] == "monday"


def test_scope_host_keeps_the_crawl_at_home(make: Make) -> None:
    home, away, www = "http://one.example/", "http://two.example/", "http://www.one.example/"
    crawl = make(
        {home: (TEXT, [away, www]), away: (story("away"), []), www: (story("www"), [])}, "--scope=host", home
    )
    assert crawl.run_round("--rounds=2") == 0
    assert {access.host for access in crawl.log} == {"one.example"}
    assert manifest(crawl, 1)["counters"]["links_rejected/out_of_scope"] == 2


def test_scope_domain_admits_the_seeds_domains(make: Make) -> None:
    home, away, www = "http://one.example/", "http://two.example/", "http://www.one.example/"
    crawl = make(
        {home: (TEXT, [away, www]), away: (story("away"), []), www: (story("www"), [])},
        "--scope=domain",
        home,
    )
    assert crawl.run_round("--rounds=2") == 0
    assert {access.host for access in crawl.log} == {"one.example", "www.one.example"}


def test_an_excluded_domain_is_never_asked(make: Make, tmp_path: Path) -> None:
    good, bad = "http://one.example/", "http://bad.example/"
    policy = tmp_path / "policy.yaml"
    policy.write_text("domains:\n  bad.example: {exclude: true}\n")
    crawl = make({good: (TEXT, [bad]), bad: (story("bad"), [])}, f"--policy={policy}", good, bad)
    assert crawl.run_round("--rounds=2") == 0
    assert {access.host for access in crawl.log} == {"one.example"}
    assert outcomes(crawl, 1)[bad] == ("excluded", "excluded")


def test_a_policy_can_slow_a_domain_and_shut_a_path(make: Make, tmp_path: Path) -> None:
    root, cart, page = "http://one.example/", "http://one.example/cart/1", "http://one.example/page"
    policy = tmp_path / "policy.yaml"
    policy.write_text('domains:\n  one.example: {exclude_paths: ["/cart"], min_delay_seconds: 0.7}\n')
    crawl = make({root: (TEXT, [cart, page]), page: (story("page"), [])}, f"--policy={policy}", root)
    assert crawl.run_round("--rounds=2") == 0
    assert cart not in outcomes(crawl, 2)
    log = crawl.log
    gaps = [later.arrived_at - earlier.ended_at for earlier, later in pairwise(log)]
    assert min(gaps) >= 0.695


def test_a_seed_injected_later_is_planned_in_the_next_round(make: Make) -> None:
    one, two = "http://one.example/", "http://two.example/"
    crawl = make({one: (TEXT, []), two: (story("second"), [])}, one)
    assert crawl.run_round() == 0
    assert give(crawl, one, two).splitlines()[-1] == "accepted: 1, known: 1, refused: 0"
    assert crawl.run_round() == 0
    assert outcomes(crawl, 2) == {two: ("fetched", None)}
    assert crawl.rows("SELECT count(*) FROM {captures} WHERE kind = 'planned'") == [(2,)]


def test_noindex_pages_lead_on_but_nofollow_pages_do_not(make: Make) -> None:
    hidden, blocked = "http://one.example/hidden", "http://one.example/blocked"
    beyond, never = "http://one.example/beyond", "http://one.example/never"
    pages = {
        hidden: (story("hidden"), [beyond]),
        blocked: (story("blocked"), [never]),
        beyond: (story("beyond"), []),
        never: (story("never"), []),
    }
    crawl = make(pages, hidden, blocked)
    crawl.web.pages[hidden].head = '<meta name="robots" content="noindex">'
    crawl.web.pages[blocked].head = '<meta name="robots" content="nofollow">'
    assert crawl.run_round("--rounds=2") == 0
    assert outcomes(crawl, 1)[hidden] == ("excluded", "noindex")
    assert outcomes(crawl, 2) == {beyond: ("fetched", None)}
