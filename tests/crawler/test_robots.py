"""robots.txt: what RFC 9309 says, one rule a test, and any bytes at all."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.patterns import MAX_ORDERS, ParamPlaces
from crawler.robots import (
    ALLOW,
    DENY,
    MAX_BODY_BYTES,
    RULES,
    RobotsRules,
    access_of,
    clip,
    product_token,
    ttl_seconds,
)


def allowed(text: str | bytes, path: str, agent: str = "roundcrawl") -> bool:
    body = text.encode() if isinstance(text, str) else text
    return RobotsRules(body, agent).verdict(f"https://site.example{path}").allowed


@pytest.mark.parametrize(
    ("user_agent", "token"),
    [
        ("RoundCrawl/1.0 (+https://a.example)", "roundcrawl"),
        ("round-crawl_x", "round-crawl_x"),
        ("Bot2000/3", "bot2000"),
        ("(odd)/1", "(odd)"),
    ],
)
def test_product_token(user_agent, token):
    assert product_token(user_agent) == token


def test_own_group_replaces_the_group_for_everyone():
    text = "User-agent: *\nDisallow: /\n\nUser-agent: RoundCrawl/2.0\nDisallow: /private\n"
    assert allowed(text, "/open")
    assert not allowed(text, "/private/x")
    assert not allowed(text, "/open", agent="other")


@pytest.mark.parametrize("name", ["round", "roundcrawler", "my-roundcrawl", "crawl"])
def test_a_name_is_matched_whole(name):
    assert allowed(f"User-agent: {name}\nDisallow: /\n", "/")


def test_a_named_group_without_rules_allows_all():
    assert allowed("User-agent: *\nDisallow: /\nUser-agent: roundcrawl\nDisallow:\n", "/x")


def test_groups_of_one_name_are_merged():
    text = (
        "User-agent: roundcrawl\nDisallow: /a\n\nUser-agent: x\nDisallow: /\n\n"
        "user-agent: ROUNDCRAWL\nDisallow: /b\n"
    )
    assert not allowed(text, "/a")
    assert not allowed(text, "/b")
    assert allowed(text, "/c")


@pytest.mark.parametrize("between", ["Crawl-delay: 1", "Sitemap: https://a/", "Noindex: /x", "", "# note"])
def test_other_lines_do_not_end_a_group(between):
    assert not allowed(f"User-agent: roundcrawl\n{between}\nUser-agent: *\nDisallow: /no\n", "/no")


def test_longest_match_wins_and_allow_wins_a_tie():
    text = "User-agent: *\nDisallow: /a\nAllow: /a/b\nDisallow: /a/b/c\nAllow: /t\nDisallow: /t\n"
    assert not allowed(text, "/a")
    assert allowed(text, "/a/b")
    assert not allowed(text, "/a/b/c")
    assert allowed(text, "/t")


def test_star_and_end_anchor():
    text = "User-agent: *\nDisallow: /*.php$\nDisallow: *tmp\n"
    assert not allowed(text, "/x/y.php")
    assert allowed(text, "/x/y.php?a=1")
    assert not allowed(text, "/deep/tmp/z")


def test_escapes_compare_by_what_they_stand_for():
    text = "User-agent: *\nDisallow: /caf%c3%a9\nDisallow: /%7euser\nDisallow: /a%2Fb\n"
    assert not allowed(text, "/caf%C3%A9")
    assert not allowed(text, "/~user")
    assert not allowed(text, "/a%2fb")
    assert allowed(text, "/a/b")


def test_robots_txt_itself_may_always_be_asked_for():
    assert allowed("User-agent: *\nDisallow: /\n", "/robots.txt")
    assert not allowed("User-agent: *\nDisallow: /\n", "/robots.txt.html")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends(end):
    assert not allowed(f"User-agent: *{end}Disallow: /x{end}", "/x")


@pytest.mark.parametrize("odd", ["\u2028", "\x85", "\x0b", "\x1c"])
def test_only_line_ends_end_a_line(odd):
    assert allowed(f"User-agent: *\nAllow: /x{odd}Disallow: /y\n", "/y")


def test_byte_order_mark_is_no_part_of_the_first_line():
    assert not allowed(b"\xef\xbb\xbfUser-agent: *\nDisallow: /x\n", "/x")


def test_bytes_that_are_not_utf8_still_match():
    assert not allowed(b"User-agent: *\nDisallow: /caf\xe9\n", "/caf%E9")


def test_absolute_or_relative_patterns_match_nothing():
    assert allowed("User-agent: *\nDisallow: https://site.example/x\nDisallow: x\n", "/x")


@pytest.mark.parametrize(
    "text",
    [
        "user agent: roundcrawl\ndissallow: /x",
        "USERAGENT roundcrawl\nDISALLOW /x",
        "User-agent : roundcrawl # us\nDisallow : /x # keep out",
        "User-agents: *\nDisallowed: /x",
        "User-agent: round*crawl\nDisallow: /x",
    ],
)
def test_frequent_slips_of_the_pen_are_understood(text):
    assert not allowed(text, "/x")


def test_rules_before_any_user_agent_are_ignored():
    assert allowed("Disallow: /\nUser-agent: *\nDisallow: /x", "/")


def test_what_lies_past_the_limit_is_ignored_with_the_line_it_cuts():
    head = b"User-agent: *\nDisallow: /a\n"
    filler = b"#" * (MAX_BODY_BYTES - len(head) - len(b"\nDisallow: /")) + b"\n"
    body = head + filler + b"Disallow: /long/path\nDisallow: /b\n"
    assert body[:MAX_BODY_BYTES].endswith(b"Disallow: /")
    assert not allowed(body, "/a")
    assert allowed(body, "/b")
    assert allowed(body, "/")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("User-agent: *\nCrawl-delay: 7.5", 7.5),
        ("User-agent: *\nDisallow: /x\nCrawl-delay: 3\nCrawl-delay: 9\n", 9.0),
        ("User-agent: *\nCrawl-delay: 10\nUser-agent: roundcrawl\nCrawl-delay: 2", 2.0),
        ("User-agent: roundcrawl\nCrawl-delay: 10\nUser-agent: x\nCrawl-delay: 2\nDisallow: /", 10.0),
        ("User-agent: *\nRequest-rate: 1/10", 10.0),
        ("User-agent: *\nCrawl-delay: soon", None),
        ("User-agent: *\nCrawl-delay: -3", None),
        ("User-agent: *\nCrawl-delay: inf", None),
        ("User-agent: *\nCrawl-delay: 4\nUser-agent: roundcrawl\nDisallow: /x", None),
        ("", None),
    ],
)
def test_crawl_delay(text, seconds):
    assert RobotsRules(text.encode(), "roundcrawl").crawl_delay_seconds == seconds


def test_verdict_names_the_line_that_forbids():
    text = "User-agent: *\nDisallow: /a # keep\nDisallow: /a/*/c$\nAllow: /a/z\n" + "".join(
        f"Disallow: /many/{number}/\n" for number in range(500)
    )
    rules = RobotsRules(text.encode(), "roundcrawl")
    assert rules.verdict("https://s.example/a/b").rule == "Disallow: /a"
    assert rules.verdict("https://s.example/a/b/c").rule == "Disallow: /a/*/c$"
    assert rules.verdict("https://s.example/many/321/x").rule == "Disallow: /many/321/"
    assert rules.verdict("https://s.example/a/z").rule is None


@pytest.mark.parametrize(
    ("rules", "path", "is_allowed"),
    [
        ("Disallow: /*?sort=", "/list?a=1&sort=x", False),
        ("Disallow: /*?sort=", "/list?a=1&b=2&sort=x&t=3", False),
        ("Disallow: /*?sort=", "/list?a=1&resort=x", True),
        ("Disallow: /*&sort=", "/list?sort=x&z=1", False),
        ("Disallow: /*&sort=", "/list?sort=x", True),
        ("Disallow: /list?sort=x$", "/list?a=1&sort=x", True),
        ("Disallow: /list?sort=x&a=", "/list?a=1&sort=x", False),
        ("Disallow: /*?sort=\nAllow: /list?sort=x", "/list?a=1&sort=x", True),
        ("Disallow: /*?sort=\nAllow: /*sort=x&a=", "/list?a=1&sort=x", True),
        ("Disallow: /*?\nAllow: /*?page=", "/list?page=1&z=2", True),
        ("Disallow: /*?\nAllow: /*?page=", "/list?a=1&page=2", False),
        ("Disallow: /other\nDisallow: /*?", "/list?a=1&b=2", False),
    ],
)
def test_a_rule_on_the_first_parameter_holds_wherever_the_sorting_put_it(rules, path, is_allowed):
    verdict = RobotsRules(f"User-agent: *\n{rules}\n".encode(), "roundcrawl").verdict(
        f"https://s.example{path}"
    )
    assert verdict.allowed is is_allowed
    assert verdict.rule in (None, *rules.split("\n"))


def test_of_a_url_with_many_parameters_few_orders_are_tried():
    rules = RobotsRules(b"User-agent: *\nDisallow: /*?p1=\nDisallow: /*&p2=\n", "roundcrawl")
    assert not rules.verdict("https://s.example/?" + "&".join(f"p{n}=1" for n in range(400))).allowed
    places = ParamPlaces(f"/*?p{n}=" for n in range(400))
    target = "/?" + "&".join(f"p{n}=1" for n in range(400))
    orders = list(places.orders(target))
    assert len(orders) == MAX_ORDERS
    assert {tuple(sorted(order[2:].split("&"))) for order in orders} == {tuple(sorted(target[2:].split("&")))}
    assert list(places.orders("/?q=1&r=2")) == list(places.orders("/?p1=1")) == list(places.orders("/")) == []


@given(st.binary(max_size=300), st.text(max_size=30))
def test_any_bytes_give_a_verdict(body, path):
    for head in (b"", b"User-agent: *\nDisallow: "):
        verdict = RobotsRules(head + body, "roundcrawl").verdict("https://s.example/" + path)
        assert verdict.allowed == (verdict.rule is None)


def test_a_bomb_of_stars_costs_little():
    body = b"User-agent: *\n" + b"Disallow: /" + b"*a" * 5_000 + b"$\n"
    began = time.process_time()
    assert allowed(body, "/" + "a" * 2_000 + "b")
    assert time.process_time() - began < 1.0


@pytest.mark.parametrize(
    ("access", "statuses"),
    [
        (RULES, [200, 204, 206]),
        (ALLOW, [301, 308, 400, 401, 403, 404, 410, 451]),
        (DENY, [429, 500, 503, 599, 700, 100, None]),
    ],
)
def test_what_an_answer_means(access, statuses):
    assert {access_of(status) for status in statuses} == {access}


def test_answers_stand_for_a_day_and_failures_for_minutes():
    assert ttl_seconds(RULES, 24) == ttl_seconds(ALLOW, 24) == 86_400.0
    assert ttl_seconds(DENY, 24) == 300.0
    assert [ttl_seconds(DENY, 24, last) for last in (300.0, 600.0, 3600.0)] == [600.0, 1200.0, 3600.0]
    assert ttl_seconds(RULES, 0) == 300.0


def test_clip_keeps_whole_lines():
    assert clip(b"a\nb") == b"a\nb"
    assert clip(b"a\n" + b"b" * MAX_BODY_BYTES) == b"a\n"
    assert clip(b"b" * (MAX_BODY_BYTES + 1)) == b""
