"""One shard's session, event by event, on a virtual clock."""

from __future__ import annotations

from itertools import pairwise

import pytest

from crawler.robots import DENY, RULES
from crawler.simulate import simulate
from crawler.visit import Ask, Finished, Reply, Settled, Wait
from schemas.state import DomainRules, HostState, RobotsState, UrlStatus
from tests.fakes.sessions import KEYS, NOW, ROBOTS_OK, Web, policy_of, rows_of, run, session_of, state_of

A, B = "http://a.example", "http://b.example"
PLANNED, HOP, ROBOTS = "planned", "hop", "robots"


def host(name: str, **facts) -> HostState:
    return HostState(name, KEYS.host_key(name), name, **facts)


def robots(authority: str, body: str = "", access: str = RULES, **facts) -> RobotsState:
    return RobotsState(authority, 1, NOW - 60, NOW + 3600, access, 200, None, body.encode())._replace(**facts)


def test_robots_first_then_each_url_after_the_delay():
    web = Web({f"{A}/robots.txt": {"status": 200, "body": ROBOTS_OK.encode()}})
    outcomes = run(session_of(f"{A}/1", f"{A}/private/x", f"{A}/2"), web)
    assert outcomes == {
        (ROBOTS, f"{A}/robots.txt"): ("fetched", None),
        (PLANNED, f"{A}/1"): ("fetched", None),
        (PLANNED, f"{A}/private/x"): ("robots_denied", "robots_rule"),
        (PLANNED, f"{A}/2"): ("fetched", None),
    }
    assert [(start - NOW, url) for start, _, url in web.log] == [
        (0.0, f"{A}/robots.txt"),
        (2.5, f"{A}/1"),
        (5.0, f"{A}/2"),
    ]


def test_a_row_tells_the_rule_the_delay_and_the_reply():
    pages = {
        f"{A}/robots.txt": {"status": 200, "body": ROBOTS_OK.encode()},
        f"{A}/1": {"status": 200, "ip": "192.0.2.1", "etag": '"x"', "content_type": "text/html"},
    }
    rows = rows_of(session_of(state_of(f"{A}/1", depth=3, discovered_from=B), f"{A}/private"), Web(pages))
    one, denied, robots_row = rows[f"{A}/1"], rows[f"{A}/private"], rows[f"{A}/robots.txt"]
    assert (one.host_delay_seconds, one.ip, one.etag, one.content_type) == (
        2.0,
        "192.0.2.1",
        '"x"',
        "text/html",
    )
    assert (one.depth, one.discovered_from, one.planned_url) == (3, B, f"{A}/1")
    assert (one.host_key, one.url_key) == (KEYS.host_key("a.example"), KEYS.url_key(f"{A}/1"))
    assert (denied.robots_rule, denied.started_at) == ("Disallow: /private", None)
    assert (robots_row.planned_url, robots_row.url_key) == (robots_row.url, KEYS.url_key(robots_row.url))


def test_known_robots_are_not_asked_again_until_they_expire():
    web = Web()
    run(session_of(f"{A}/1", robots=[robots(f"{A}:80")]), web)
    assert web.urls == [f"{A}/1"]
    web = Web()
    run(session_of(f"{A}/1", robots=[robots(f"{A}:80", expires_at=NOW - 1)]), web)
    assert web.urls == [f"{A}/robots.txt", f"{A}/1"]


def test_http_and_https_share_a_queue_but_not_a_robots_txt():
    web = Web()
    run(session_of(f"{A}/1", "https://a.example/2", "http://a.example:8080/3"), web)
    assert sorted(url for url in web.urls if url.endswith("robots.txt")) == [
        f"{A}/robots.txt",
        "http://a.example:8080/robots.txt",
        "https://a.example/robots.txt",
    ]
    starts = [start for start, _, _ in web.log]
    assert all(b - a >= 2.5 for a, b in pairwise(starts))


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"status": 503}, "robots_unreachable"),
        ({"status": 429}, "robots_unreachable"),
        ({"status": 500}, "robots_unreachable"),
        ({"failure": "timeout"}, "robots_unreachable"),
        ({"status": 200, "truncated": "time"}, "robots_unreachable"),
        ({"status": 301, "location": "https://other.test/robots.txt"}, "robots_redirect"),
    ],
)
def test_without_a_robots_answer_nothing_is_asked(answer, reason):
    web = Web({f"{A}/robots.txt": answer})
    session = session_of(f"{A}/1", f"{A}/2")
    outcomes = run(session, web)
    assert outcomes[PLANNED, f"{A}/1"] == outcomes[PLANNED, f"{A}/2"] == ("deferred", reason)
    assert web.urls == [f"{A}/robots.txt"]
    (state,) = session.changed_robots()
    assert (state.access, state.expires_at - state.fetched_at) == (DENY, 300.0)


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        ("dns_failure", "dns_failure"),
        ("connection_refused", "connection_refused"),
        ("connect_timeout", "timeout"),
        ("tls_error", "tls_error"),
    ],
)
def test_a_host_that_nobody_can_connect_to_fails_its_urls(failure, reason):
    web = Web({f"{A}/robots.txt": {"failure": failure}})
    outcomes = run(session_of(f"{A}/1", f"{A}/2"), web)
    assert outcomes[PLANNED, f"{A}/1"] == outcomes[PLANNED, f"{A}/2"] == ("failed_retry", reason)


@pytest.mark.parametrize("failure", ["private_address", "dns_failure", "connection_refused", "no_contact"])
def test_a_robots_txt_that_redirects_to_where_nobody_answers_is_unreachable_itself(failure):
    elsewhere = "http://lost.a.example"
    pages = {
        f"{A}/robots.txt": {"status": 301, "location": f"{elsewhere}/robots.txt"},
        f"{elsewhere}/robots.txt": {"failure": failure},
    }
    outcomes = run(session_of(f"{A}/1"), Web(pages))
    assert outcomes[PLANNED, f"{A}/1"] == ("deferred", "robots_unreachable")
    known = robots(f"{elsewhere}:80", access=DENY, reason=failure)
    outcomes = run(session_of(f"{A}/1", robots=[known]), Web(pages))
    assert outcomes[PLANNED, f"{A}/1"] == ("deferred", "robots_unreachable"), "as remembered"


def test_files_of_rules_do_not_fill_the_memory():
    huge = b"User-agent: *\nDisallow: /x\n" + b"#" * 400_000
    hosts = [f"http://h{n}.example" for n in range(30)]
    web = Web({f"{url}/robots.txt": {"status": 200, "body": huge} for url in hosts})
    session = session_of(*(f"{url}/1" for url in hosts))
    outcomes = run(session, web)
    kept = [url for url in hosts if outcomes[PLANNED, f"{url}/1"] == ("fetched", None)]
    assert len(kept) == 4 * 1024 * 1024 // len(huge) == 10
    late = [outcomes[PLANNED, f"{url}/1"] for url in hosts if url not in kept]
    assert set(late) == {("deferred", "robots_unreachable")}
    assert sum(len(state.body) for state in session.changed_robots()) <= 4 * 1024 * 1024


def test_remembered_files_of_rules_do_not_fill_the_memory_either():
    huge = "User-agent: *\nDisallow: /x\n" + "#" * 400_000
    hosts = [f"http://h{n}.example" for n in range(30)]
    known = [robots(f"{url}:80", huge) for url in hosts]
    web = Web()
    run(session_of(*(f"{url}/1" for url in hosts), robots=known), web)
    asked = [url for url in web.urls if url.endswith("/robots.txt")]
    assert len(asked) == 20, "what found no room is asked for again"


def test_urls_behind_a_broken_robots_txt_do_not_wait_for_the_hosts_rest():
    session = session_of(f"{A}/1", f"{A}/2")
    ask = session.next_action(NOW)
    assert (ask.kind, ask.request.url) == ("robots", f"{A}/robots.txt")
    rows = session.finish(ask.ticket, Reply(NOW, NOW + 0.1, status=503), NOW + 0.1)
    assert [(row.kind, row.outcome, row.reason) for row in rows] == [
        ("robots", "failed_retry", "http_503"),
        ("planned", "deferred", "robots_unreachable"),
        ("planned", "deferred", "robots_unreachable"),
    ]
    assert isinstance(session.next_action(NOW + 0.1), Finished)


@pytest.mark.parametrize(
    "answer",
    [
        {"status": 404},
        {"status": 403},
        {"status": 410},
        {"status": 301, "location": "http://a.example/robots.txt"},
        {"status": 301, "location": "::"},
        {"status": 301},
        {"status": 200, "body": b"<html>"},
    ],
)
def test_no_robots_txt_allows_all(answer):
    outcomes = run(session_of(f"{A}/1"), Web({f"{A}/robots.txt": answer}))
    assert outcomes[PLANNED, f"{A}/1"] == ("fetched", None)


def test_robots_redirect_goes_through_the_targets_queue_and_serves_both():
    https = "https://www.a.example"
    pages = {
        f"{A}/robots.txt": {"status": 301, "location": f"{https}/robots.txt"},
        f"{https}/robots.txt": {"status": 200, "body": ROBOTS_OK.encode()},
    }
    web = Web(pages)
    session = session_of(f"{A}/1", f"{A}/private", f"{https}/1", f"{https}/private")
    outcomes = run(session, web)
    assert outcomes[PLANNED, f"{A}/private"][0] == outcomes[PLANNED, f"{https}/private"][0] == "robots_denied"
    assert outcomes[PLANNED, f"{A}/1"][0] == outcomes[PLANNED, f"{https}/1"][0] == "fetched"
    assert web.urls.count(f"{https}/robots.txt") == 1
    assert {state.authority for state in session.changed_robots()} == {f"{A}:80", f"{https}:443"}


def test_robots_redirects_end_after_five_hops():
    pages = {f"{A}/robots.txt": {"status": 302, "location": "/r1"}}
    pages |= {f"{A}/r{n}": {"status": 302, "location": f"/r{n + 1}"} for n in range(1, 9)}
    web = Web(pages)
    outcomes = run(session_of(f"{A}/1"), web)
    assert outcomes[PLANNED, f"{A}/1"] == ("fetched", None)
    assert outcomes[ROBOTS, f"{A}/r5"] == ("gone", "too_many_redirects")
    assert f"{A}/r6" not in web.urls


def test_robots_of_another_domain_serves_if_its_answer_is_known():
    pages = {f"{A}/robots.txt": {"status": 301, "location": "https://other.test/robots.txt"}}
    session = session_of(f"{A}/private", robots=[robots("https://other.test:443", ROBOTS_OK)])
    assert run(session, Web(pages))[PLANNED, f"{A}/private"][0] == "robots_denied"


def test_redirect_within_the_domain_is_followed_in_its_hosts_queue():
    https = "https://www.a.example"
    pages = {f"{A}/1": {"status": 301, "location": f"{https}/1?utm_source=x"}}
    web = Web(pages)
    rows = rows_of(session_of(f"{A}/1"), web)
    assert (rows[f"{A}/1"].outcome, rows[f"{A}/1"].reason) == ("redirected", "redirect_followed")
    assert rows[f"{A}/1"].redirect_url == f"{https}/1"
    hop = rows[f"{https}/1"]
    assert (hop.kind, hop.outcome, hop.planned_url) == (HOP, "fetched", f"{A}/1")
    assert web.urls == [f"{A}/robots.txt", f"{A}/1", f"{https}/robots.txt", f"{https}/1"]


@pytest.mark.parametrize(
    ("target", "extra"),
    [
        ("http://other.test/", {}),
        (f"{A}/2", {}),
        (f"{A}/known", {"known": lambda url: url.endswith("/known")}),
        (f"{A}/outside", {"admits": lambda url, source_url: not url.endswith("/outside")}),
    ],
)
def test_any_other_redirect_is_left_for_later(target, extra):
    web = Web({f"{A}/1": {"status": 302, "location": target}})
    rows = rows_of(session_of(f"{A}/1", f"{A}/2", **extra), web)
    assert (rows[f"{A}/1"].outcome, rows[f"{A}/1"].reason) == ("redirected", "redirect_queued")
    assert rows[f"{A}/1"].redirect_url == target
    assert web.urls.count(f"{A}/2") == 1


def test_redirect_loops_and_endless_chains_are_cut():
    pages = {f"{A}/self": {"status": 302, "location": "/self"}}
    pages |= {f"{A}/{n}": {"status": 302, "location": f"/{n + 1}"} for n in range(20)}
    pages |= {f"{B}/x": {"status": 302, "location": "/y"}, f"{B}/y": {"status": 302, "location": "/x"}}
    outcomes = run(session_of(f"{A}/self", f"{A}/0", f"{B}/x"), Web(pages))
    assert outcomes[PLANNED, f"{A}/self"] == ("gone", "redirect_loop")
    assert outcomes[HOP, f"{B}/y"] == ("gone", "redirect_loop")
    assert outcomes[HOP, f"{A}/5"] == ("gone", "too_many_redirects")
    assert (HOP, f"{A}/6") not in outcomes


def test_two_redirects_to_one_target_ask_it_once():
    pages = {f"{A}/{n}": {"status": 301, "location": "/home"} for n in (1, 2)}
    outcomes = run(session_of(f"{A}/1", f"{A}/2"), Web(pages))
    assert sorted(outcomes[PLANNED, f"{A}/{n}"][1] for n in (1, 2)) == [
        "redirect_followed",
        "redirect_queued",
    ]
    assert outcomes[HOP, f"{A}/home"] == ("fetched", None)


@pytest.mark.parametrize(
    "answer", [{"status": 301}, {"status": 302, "location": "mailto:x@a"}, {"status": 300}]
)
def test_redirect_to_nowhere(answer):
    assert run(session_of(f"{A}/1"), Web({f"{A}/1": answer}))[PLANNED, f"{A}/1"] == (
        "redirected",
        "redirect_invalid",
    )


def test_hop_obeys_its_own_robots():
    https = "https://a.example"
    pages = {
        f"{A}/1": {"status": 301, "location": f"{https}/private"},
        f"{https}/robots.txt": {"status": 200, "body": ROBOTS_OK.encode()},
    }
    assert run(session_of(f"{A}/1"), Web(pages))[HOP, f"{https}/private"] == ("robots_denied", "robots_rule")


def test_cookies_live_within_their_chain_and_host():
    pages = {
        f"{A}/1": {"status": 302, "location": "/2", "cookies": (("sid", "7"), ("x", "1"))},
        f"{A}/2": {"status": 302, "location": "http://www.a.example/3", "cookies": (("x", "2"),)},
        "http://www.a.example/3": {"status": 302, "location": f"{A}/4"},
    }
    web = Web(pages)
    run(session_of(f"{A}/1", f"{A}/z"), web)
    sent = {request.url: request.cookies for request in web.requests}
    assert sent[f"{A}/2"] == (("sid", "7"), ("x", "1"))
    assert sent["http://www.a.example/3"] == ()
    assert sent[f"{A}/4"] == (("sid", "7"), ("x", "2"))
    assert sent[f"{A}/z"] == sent[f"{A}/robots.txt"] == ()


@pytest.mark.parametrize(
    ("answer", "retries", "outcome", "after"),
    [
        ({"status": 200}, 3, ("fetched", None), 0),
        ({"status": 200, "truncated": "length"}, 0, ("fetched", None), 0),
        ({"status": 404}, 0, ("gone", "http_404"), 0),
        ({"status": 429}, 5, ("failed_retry", "http_429"), 5),
        ({"status": 503}, 5, ("failed_retry", "http_503"), 5),
        ({"status": 408}, 5, ("failed_retry", "http_408"), 5),
        ({"status": 425}, 5, ("failed_retry", "http_425"), 5),
        ({"status": 500}, 4, ("failed_retry", "http_500"), 5),
        ({"status": 500}, 5, ("gone", "http_500"), 6),
        ({"failure": "timeout"}, 4, ("failed_retry", "timeout"), 5),
        ({"failure": "tls_error"}, 5, ("gone", "tls_error"), 6),
        ({"failure": "private_address"}, 1, ("excluded", "private_address"), 1),
        ({"failure": "port_not_allowed"}, 1, ("excluded", "port_not_allowed"), 1),
        ({"status": 304}, 0, ("failed_retry", "http_304"), 1),
        ({"status": 999}, 0, ("failed_retry", "http_999"), 1),
    ],
)
def test_what_each_answer_means(answer, retries, outcome, after):
    session = session_of(state_of(f"{A}/1", retries=retries), robots=[robots(f"{A}:80")])
    row = rows_of(session, Web({f"{A}/1": answer}))[f"{A}/1"]
    assert ((row.outcome, row.reason), row.retries) == (outcome, after)


def test_conditional_request_and_its_304():
    old = state_of(f"{A}/1", etag='"v1"', last_modified="Mon", status=UrlStatus.FETCHED)
    copy = state_of(f"{A}/2", etag='"v2"', duplicate_of=f"{A}/1", status=UrlStatus.FAILING)
    web = Web({f"{A}/1": {"status": 304}})
    rows = rows_of(session_of(old, copy), web)
    sent = {request.url: (request.etag, request.last_modified) for request in web.requests}
    assert sent[f"{A}/1"] == ('"v1"', "Mon")
    assert sent[f"{A}/2"] == (None, None)
    assert (rows[f"{A}/1"].outcome, rows[f"{A}/1"].etag, rows[f"{A}/1"].last_modified) == (
        "not_modified",
        '"v1"',
        "Mon",
    )


def test_a_503_pauses_the_whole_host_for_as_long_as_it_says():
    web = Web({f"{A}/1": {"status": 503, "retry_after": "90"}})
    session = session_of(f"{A}/1", f"{A}/2", robots=[robots(f"{A}:80")])
    rows = rows_of(session, web)
    assert [(start - NOW, url) for start, _, url in web.log] == [(0.0, f"{A}/1"), (90.5, f"{A}/2")]
    assert rows[f"{A}/1"].retry_after_at == NOW + 90.5
    assert session.changed_hosts()[0].backoff_count == 0, "an answer ends the backoff"


def test_a_pause_past_the_deadline_defers_the_host_at_once():
    web = Web({f"{A}/1": {"status": 429, "retry_after": "7200"}})
    session = session_of(f"{A}/1", f"{A}/2", robots=[robots(f"{A}:80")])
    result = simulate(session, NOW, 4, web)
    assert result.finished_at == NOW + 0.5
    assert {row.reason for row in result.rows} == {"http_429", "host_backoff"}
    (state,) = session.changed_hosts()
    assert (state.not_before_at, state.backoff_count, state.failures) == (NOW + 7200.5, 1, 1)
    again = session_of(f"{A}/1", hosts=[state])
    assert run(again, Web())[PLANNED, f"{A}/1"] == ("deferred", "host_backoff")


def test_five_failures_in_a_row_retire_the_host():
    urls = [f"{A}/{n}" for n in range(8)]
    web = Web({url: {"failure": "timeout"} for url in urls})
    outcomes = run(session_of(*urls, robots=[robots(f"{A}:80")]), web)
    assert (
        sorted(outcomes.values()) == [("deferred", "host_failures")] * 3 + [("failed_retry", "timeout")] * 5
    )


def test_an_answer_in_between_keeps_the_host():
    urls = [f"{A}/{n}" for n in range(12)]
    web = Web({url: {"status": 404 if n % 4 == 3 else 500} for n, url in enumerate(urls)})
    outcomes = run(session_of(*urls, robots=[robots(f"{A}:80")]), web)
    assert len([value for value in outcomes.values() if value[0] == "deferred"]) == 0


def test_a_host_that_failed_in_earlier_rounds_gets_one_try():
    urls = [f"{A}/{n}" for n in range(3)]
    bad = host("a.example", failures=9)
    web = Web({url: {"failure": "timeout"} for url in urls})
    run(session_of(*urls, hosts=[bad], robots=[robots(f"{A}:80")]), web)
    assert len(web.log) == 1
    web = Web()
    run(session_of(*urls, hosts=[bad], robots=[robots(f"{A}:80")]), web)
    assert len(web.log) == 3


def test_private_address_closes_the_host_without_costing_delays():
    web = Web({f"{A}/robots.txt": {"failure": "private_address"}}, latency=0.0)
    session = session_of(f"{A}/1", f"{A}/2")
    result = simulate(session, NOW, 4, web)
    assert {row.url for row in result.rows} == {f"{A}/robots.txt", f"{A}/1", f"{A}/2"}
    assert {(row.outcome, row.reason) for row in result.rows} == {("excluded", "private_address")}
    assert [state.last_fetch_at for state in session.changed_hosts()] == [None]


def test_a_refused_port_bars_its_authority_only():
    odd = "http://a.example:8081"
    web = Web({f"{odd}/robots.txt": {"failure": "port_not_allowed"}})
    outcomes = run(session_of(f"{odd}/1", f"{odd}/2", f"{A}/1"), web)
    assert outcomes[PLANNED, f"{odd}/1"] == outcomes[PLANNED, f"{odd}/2"] == ("excluded", "port_not_allowed")
    assert outcomes[PLANNED, f"{A}/1"] == ("fetched", None)
    assert web.urls.count(f"{odd}/robots.txt") == 1


def test_a_refused_target_of_a_robots_redirect_makes_it_unreachable():
    www = "http://www.a.example"
    pages = {
        f"{A}/robots.txt": {"status": 301, "location": f"{www}/robots.txt"},
        f"{www}/robots.txt": {"failure": "private_address"},
    }
    outcomes = run(session_of(f"{A}/1"), Web(pages))
    assert outcomes[PLANNED, f"{A}/1"] == ("deferred", "robots_unreachable")


def test_nothing_starts_at_the_deadline():
    urls = [f"{A}/{n}" for n in range(100)]
    web = Web()
    session = session_of(*urls, minutes=1.0)
    outcomes = run(session, web)
    assert max(start for start, _, _ in web.log) < NOW + 60
    assert {value for value in outcomes.values() if value[0] == "deferred"} == {
        ("deferred", "round_deadline")
    }
    assert len(outcomes) == 101


def test_a_crawl_delay_is_kept_and_one_above_the_maximum_gets_few_urls():
    urls = [f"{A}/{n}" for n in range(30)]
    for seconds, expected in ((10, 30), (125, 3)):
        body = f"User-agent: *\nCrawl-delay: {seconds}".encode()
        web = Web({f"{A}/robots.txt": {"status": 200, "body": body}})
        outcomes = run(session_of(*urls, policy=policy_of(slow_host_urls=3)), web)
        starts = [start for start, _, _ in web.log]
        assert all(b - a >= seconds + 0.5 for a, b in pairwise(starts))
        assert list(outcomes.values()).count(("fetched", None)) == expected + 1
        assert list(outcomes.values()).count(("deferred", "crawl_delay")) == 30 - expected


def test_known_crawl_delay_holds_before_the_first_request_too():
    fresh = robots(f"{A}:80", "User-agent: *\nCrawl-delay: 50")
    web = Web()
    run(session_of(f"{A}/1", hosts=[host("a.example", last_fetch_at=NOW - 10)], robots=[fresh]), web)
    assert web.log[0][0] == NOW + 40


def test_slow_answers_slow_the_crawler_down():
    policy = policy_of(latency_factor=2.0, max_delay_seconds=30.0)
    web = Web({f"{A}/1": {"status": 200, "latency": 8.0}, f"{A}/2": {"status": 200, "latency": 100.0}})
    run(session_of(f"{A}/1", f"{A}/2", f"{A}/3", policy=policy, robots=[robots(f"{A}:80")]), web)
    assert [start - NOW for start, _, _ in web.log] == [0.0, 24.0, 154.0]


def test_clock_goes_on_from_the_last_round():
    web = Web()
    late = host("a.example", last_fetch_at=NOW - 1, delay_seconds=20.0)
    run(session_of(f"{A}/1", hosts=[late], robots=[robots(f"{A}:80")]), web)
    assert web.log[0][0] == NOW + 19


def test_after_a_takeover_no_host_is_asked_before_its_delay():
    web = Web()
    slow = host("b.example", delay_seconds=30.0)
    run(session_of(f"{A}/1", f"{B}/1", hosts=[slow], first_request_after=NOW), web)
    assert [start - NOW for start, _, _ in web.log][:3] == [2.0, 4.5, 30.0]


def test_operators_delay_and_tls_rules_reach_the_request():
    web = Web()
    rules = {"a.example": DomainRules(min_delay_seconds=7.0, insecure_tls=True)}
    run(session_of(f"{A}/1", rules=rules), web)
    assert web.log[1][0] - NOW == 7.5
    assert [request.insecure_tls for request in web.requests] == [True, True]


def test_excluded_before_the_start_and_by_path():
    rules = {"a.example": DomainRules(exclude=True), "b.example": DomainRules(exclude_paths=("/cart",))}
    web = Web()
    outcomes = run(session_of(f"{A}/1", f"{B}/cart/1", f"{B}/2", rules=rules), web)
    assert outcomes[PLANNED, f"{A}/1"] == outcomes[PLANNED, f"{B}/cart/1"] == ("excluded", "excluded")
    assert set(web.urls) == {f"{B}/robots.txt", f"{B}/2"}


def test_an_exclusion_in_the_middle_settles_what_waits_at_once():
    session = session_of(f"{A}/1", f"{A}/2", f"{B}/1")
    asks = [session.next_action(NOW) for _ in range(2)]
    assert all(isinstance(ask, Ask) for ask in asks)
    rows = session.use_rules(lambda name: DomainRules(exclude=name == "a.example"), NOW + 0.1)
    assert {(row.url, row.outcome) for row in rows} == {(f"{A}/1", "excluded"), (f"{A}/2", "excluded")}
    for ask in asks:
        session.finish(ask.ticket, Reply(NOW, NOW + 0.5, status=404), NOW + 0.5)
    last = session.next_action(NOW + 10)
    assert isinstance(last, Ask)
    assert last.request.url == f"{B}/1"


def test_a_stop_leaves_what_waits_without_a_row():
    session = session_of(f"{A}/1", f"{A}/2", f"{B}/1")
    one, two = session.next_action(NOW), session.next_action(NOW)
    session.stop()
    assert session.next_action(NOW) == Wait(None)
    rows = session.finish(one.ticket, Reply(NOW, NOW + 1, status=404), NOW + 1)
    assert [row.kind for row in rows] == [ROBOTS]
    session.abandon(two.ticket, NOW + 1)
    assert session.next_action(NOW + 1) == Finished()
    assert session.progress().done == 0
    assert {state.host: state.last_fetch_at for state in session.changed_hosts()} == {
        "a.example": NOW + 1,
        "b.example": NOW + 1,
    }


def test_an_abandoned_request_is_asked_again_after_the_delay():
    session = session_of(f"{A}/1", robots=[robots(f"{A}:80")])
    ask = session.next_action(NOW)
    session.abandon(ask.ticket, NOW + 1)
    assert session.next_action(NOW + 1) == Wait(NOW + 3)
    assert session.next_action(NOW + 3).request.url == f"{A}/1"


def test_what_the_journal_records_is_not_done_again():
    web = Web()
    session = session_of(f"{A}/1", f"{A}/2", done={f"{A}/1"})
    assert run(session, web) == {
        (ROBOTS, f"{A}/robots.txt"): ("gone", "http_404"),
        (PLANNED, f"{A}/2"): ("fetched", None),
    }
    assert session.progress()[:2] == (2, 2)


def test_settled_rows_need_no_reply():
    known = robots(f"{A}:80", access=DENY, reason="timeout")
    session = session_of(f"{A}/1", robots=[known])
    action = session.next_action(NOW)
    assert isinstance(action, Settled)
    assert (action.rows[0].reason, action.rows[0].detail) == ("robots_unreachable", "timeout")
    assert session.next_action(NOW) == Finished()


def test_a_url_planned_twice_counts_once():
    session = session_of(f"{A}/1", f"{A}/1")
    assert run(session, Web())[PLANNED, f"{A}/1"] == ("fetched", None)
    assert session.progress()[:2] == (1, 1)


def test_an_empty_shard_is_finished():
    assert session_of().next_action(NOW) == Finished()


def test_hosts_of_one_address_are_asked_apart_unless_it_is_exempt():
    hosts = [host(f"h{n}.example", ip="192.0.2.9") for n in range(4)]
    urls = [f"http://h{n}.example/" for n in range(4)]
    web = Web()
    run(session_of(*urls, hosts=hosts, policy=policy_of(min_ip_delay_seconds=0.5)), web)
    starts = sorted(start for start, _, _ in web.log)
    assert all(b - a >= 0.5 for a, b in pairwise(starts))
    policy = policy_of(min_ip_delay_seconds=0.5, exempt_addresses=frozenset({"192.0.2.9"}))
    web = Web()
    run(session_of(*urls, hosts=hosts, policy=policy), web)
    assert [start for start, _, _ in web.log][:4] == [NOW] * 4


def test_what_was_not_sent_is_asked_when_its_address_is_free():
    session = session_of(f"{A}/1", "http://b.example/1", policy=policy_of(min_ip_delay_seconds=0.5))
    asks = [session.next_action(NOW) for _ in range(2)]
    session.postpone(asks[0].ticket, "192.0.2.1", NOW + 0.4, NOW)
    session.postpone(asks[1].ticket, "192.0.2.1", NOW + 0.4, NOW)
    assert session.next_action(NOW + 0.3) == Wait(NOW + 0.4)
    assert session.progress().in_hand == 0
    again = session.next_action(NOW + 0.4)
    assert again.request == asks[0].request
    assert session.next_action(NOW + 0.4) == Wait(NOW + 0.9), "both stand in the line of their address now"
    assert session.next_action(NOW + 0.9).request == asks[1].request
    assert session.changed_hosts() == [], "a request that was not sent leaves no trace"


def test_a_request_that_was_not_sent_does_not_count_against_a_slow_host():
    slow = {f"{A}/robots.txt": {"status": 200, "body": b"User-agent: *\nCrawl-delay: 100\n"}}
    policy = policy_of(max_crawl_delay_seconds=10.0, slow_host_urls=1)
    session, web = session_of(f"{A}/1", policy=policy), Web(slow)
    ask = session.next_action(NOW)
    session.finish(ask.ticket, web(ask, NOW), NOW + 1)
    page = session.next_action(NOW + 101)
    session.postpone(page.ticket, "192.0.2.1", NOW + 102, NOW + 101)
    assert session.next_action(NOW + 102).request == page.request


def test_hop_to_a_host_without_urls_of_its_own_keeps_that_hosts_clock():
    www = "http://www.a.example"
    web = Web({f"{A}/1": {"status": 301, "location": f"{www}/1"}})
    asked_before = host("www.a.example", last_fetch_at=NOW, delay_seconds=100.0)
    run(session_of(f"{A}/1", hosts=[asked_before], robots=[robots(f"{A}:80"), robots(f"{www}:80")]), web)
    assert [(start - NOW, url) for start, _, url in web.log] == [(0.0, f"{A}/1"), (100.0, f"{www}/1")]


def test_urls_that_waited_for_a_robots_txt_keep_their_order():
    www = "http://www.a.example"
    pages = {f"{A}/robots.txt": {"status": 301, "location": f"{www}/robots.txt"}}
    busy = host("www.a.example", last_fetch_at=NOW, delay_seconds=20.0)
    web = Web(pages)
    run(session_of(*(f"{A}/{n}" for n in range(4)), hosts=[busy]), web)
    assert [url for url in web.urls if "robots" not in url] == [f"{A}/{n}" for n in range(4)]


def test_a_robots_txt_on_a_host_that_is_closed_is_given_up_once():
    www = "http://www.a.example"
    web = Web({f"{A}/robots.txt": {"status": 301, "location": f"{www}/robots.txt"}})
    rules = {"www.a.example": DomainRules(exclude=True)}
    session = session_of(f"{A}/1", f"{A}/2", f"{A}/3", rules=rules)
    outcomes = run(session, web)
    assert web.urls == [f"{A}/robots.txt"]
    assert {outcomes[PLANNED, f"{A}/{n}"] for n in (1, 2, 3)} == {("deferred", "robots_unreachable")}
    assert session.changed_robots() == [], "not remembered: the next round asks again"


def test_what_waits_for_a_robots_txt_at_the_deadline_is_deferred_for_that():
    www = "http://www.a.example"
    web = Web({f"{A}/robots.txt": {"status": 301, "location": f"{www}/robots.txt"}})
    busy = host("www.a.example", not_before_at=NOW + 59.9)
    outcomes = run(session_of(f"{A}/1", f"{A}/2", hosts=[busy], minutes=1.0), web)
    assert outcomes[PLANNED, f"{A}/1"] == outcomes[PLANNED, f"{A}/2"] == ("deferred", "round_deadline")


def test_the_longest_crawl_delay_of_a_hosts_authorities_holds():
    https = "https://a.example"
    known = [
        robots(f"{A}:80", "User-agent: *\nCrawl-delay: 20"),
        robots(f"{https}:443", "User-agent: *\nCrawl-delay: 3"),
    ]
    web = Web()
    run(session_of(f"{A}/1", f"{https}/1", f"{https}/2", robots=known), web)
    starts = [start for start, _, _ in web.log]
    assert [b - a for a, b in pairwise(starts)][-1] == 20.5


def test_a_host_that_fails_while_a_stop_is_under_way_keeps_its_urls_for_later():
    session = session_of(
        f"{A}/1", f"{A}/2", hosts=[host("a.example", failures=4)], robots=[robots(f"{A}:80")]
    )
    ask = session.next_action(NOW)
    session.stop()
    rows = session.finish(ask.ticket, Reply(NOW, NOW + 1, failure="timeout"), NOW + 1)
    assert [row.url for row in rows] == [f"{A}/1"]
    assert session.next_action(NOW + 1) == Finished()


def test_the_answer_at_the_end_of_a_robots_redirect_serves_its_own_authority_too():
    https = "https://a.example"
    pages = {
        f"{A}/robots.txt": {"status": 301, "location": f"{https}/robots.txt"},
        f"{https}/robots.txt": {"status": 200, "body": ROBOTS_OK.encode()},
        f"{A}/1": {"status": 301, "location": f"{https}/1"},
    }
    web = Web(pages)
    run(session_of(f"{A}/1"), web)
    assert web.urls == [f"{A}/robots.txt", f"{https}/robots.txt", f"{A}/1", f"{https}/1"]
