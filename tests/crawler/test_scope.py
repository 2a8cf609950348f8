"""Scope rules: what each rejects, what it must let through, and the order in which they speak."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from crawler.scope import ADMITTED, DEFAULT_PORTS, RULES, LinkContext, ScopePolicy, Verdict, admit
from crawler.urls import split
from schemas.state import DomainRules

NOW = datetime(2026, 11, 30, tzinfo=UTC).timestamp()


def verdict_on(url, depth=1, rules=None, policy=None, source_url="http://src.example/", asked=RULES):
    context = LinkContext(
        url, split(url), depth, source_url, rules or DomainRules(), policy or ScopePolicy(), NOW
    )
    return admit(context, asked)


def reason_for(url, **terms):
    return verdict_on(url, **terms).reason


def test_an_ordinary_link_is_admitted():
    assert verdict_on("https://www.example.com/a/b.html?x=1") == ADMITTED


@pytest.mark.parametrize("port", [80, 443, 8080, 8443])
def test_usual_ports_are_admitted(port):
    assert verdict_on(f"http://h.example:{port}/" if port != 80 else "http://h.example/").admitted


@pytest.mark.parametrize("port", [0, 22, 25, 6379, 8000, 65535])
def test_other_ports_are_not(port):
    assert reason_for(f"http://h.example:{port}/") == "unsupported_port"


def test_a_port_of_the_operator_is_admitted():
    assert verdict_on("http://h.example:8000/", policy=ScopePolicy(ports=DEFAULT_PORTS | {8000})).admitted


def test_length_is_bounded_to_the_character():
    policy = ScopePolicy(max_url_length=30)
    assert verdict_on("http://h.example/" + "a" * 13, policy=policy).admitted
    assert reason_for("http://h.example/" + "a" * 14, policy=policy) == "url_too_long"


def test_depth_is_the_crawls_or_the_domains():
    assert verdict_on("http://h.example/", depth=20).admitted
    assert reason_for("http://h.example/", depth=21) == "trap_depth"
    assert reason_for("http://h.example/", depth=5, rules=DomainRules(max_depth=4)) == "trap_depth"
    assert verdict_on("http://h.example/", depth=50, rules=DomainRules(max_depth=50)).admitted


def test_scope_any_domain_host():
    seeds = frozenset({"www.shop.co.uk", "me.blogspot.com", "127.0.0.1"})
    by_domain, by_host = (ScopePolicy(scope=scope, seed_hosts=seeds) for scope in ("domain", "host"))
    assert verdict_on("http://other.example/", policy=ScopePolicy(seed_hosts=seeds)).admitted
    for host in ("www.shop.co.uk", "127.0.0.1"):
        assert verdict_on(f"http://{host}/", policy=by_domain).admitted
        assert verdict_on(f"http://{host}/", policy=by_host).admitted
    assert verdict_on("http://shop.co.uk/", policy=by_domain).admitted
    assert reason_for("http://shop.co.uk/", policy=by_host) == "out_of_scope"
    for host in ("co.uk", "other.co.uk", "you.blogspot.com", "127.0.0.2", "notshop.co.uk"):
        assert reason_for(f"http://{host}/", policy=by_domain) == "out_of_scope"


def test_the_operators_exclusions():
    assert reason_for("http://h.example/", rules=DomainRules(exclude=True)) == "excluded"
    rules = DomainRules(exclude_paths=("/cart", "/*?sort="))
    assert reason_for("http://h.example/cart/1", rules=rules) == "excluded_path"
    assert reason_for("http://h.example/list?colour=1&sort=2", rules=rules) == "excluded_path"
    assert verdict_on("http://h.example/list", rules=rules).admitted


@pytest.mark.parametrize(
    "path",
    [
        "/a.zip",
        "/a.tar.gz",
        "/a.JPG",
        "/a.b.mp4",
        "/a.pdf",
        "/a.pdf?x=1",
        "/a.docx;v=1",
        "/x.iso",
        "/app.js",
        "/f.woff2",
    ],
)
def test_what_is_no_page_by_its_ending(path):
    assert reason_for(f"http://h.example{path}") == "excluded_extension"


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/a.html",
        "/a.php",
        "/a.txt",
        "/a.xhtml",
        "/a.aspx",
        "/a.jpg/",
        "/a.jpg/view",
        "/get?file=a.zip",
        "/example.com",
        "/whois/example.com.au",
        "/.zip",
        "/v1.2",
        "/wiki/File:Cat.jpg",
        "/wiki/Node.js",
        "/zip",
        "/a.zipped",
        "/report.2024",
    ],
)
def test_what_may_be_a_page(path):
    assert verdict_on(f"http://h.example{path}").admitted


def test_rules_are_a_list_that_a_user_extends():
    def no_forums(link):
        return Verdict.reject("forum") if "/forum/" in link.parts.path else ADMITTED

    assert reason_for("http://h.example/forum/1", asked=[*RULES, no_forums]) == "forum"
    assert verdict_on("http://h.example/page", asked=[*RULES, no_forums]).admitted
    assert verdict_on("http://h.example:22/", asked=[no_forums]).admitted


def test_a_rule_can_look_at_the_source():
    def stays_on_its_domain(link):
        return ADMITTED if link.source_domain in (None, link.domain) else Verdict.reject("offsite")

    asked = [stays_on_its_domain]
    assert reason_for("http://b.example.org/", source_url="http://a.example.com/", asked=asked) == "offsite"
    assert verdict_on("http://b.example.org/", source_url="https://a.example.org:81/x", asked=asked).admitted
    assert verdict_on("http://b.example.org/", source_url=None, asked=asked).admitted


def test_other_schemes_are_rejected_even_if_parts_come_from_elsewhere():
    parts = split("http://h.example/")._replace(scheme="ftp")
    context = LinkContext("ftp://h.example/", parts, 0, None, DomainRules(), ScopePolicy(), NOW)
    assert admit(context).reason == "unsupported_scheme"


@pytest.mark.parametrize(
    ("terms", "complaint"),
    [
        ({"max_depth": -1}, "max_depth must be 0 or more, got -1"),
        ({"max_url_length": 0}, "max_url_length must be 1 or more, got 0"),
        ({"max_path_segments": 0}, "max_path_segments must be 1 or more, got 0"),
        ({"max_segment_repeats": 0}, "max_segment_repeats must be 1 or more, got 0"),
        ({"calendar_years_back": -1}, "calendar_years_back must be 0 or more, got -1"),
        ({"scope": "site"}, "scope must be any, domain or host, got 'site'"),
        ({"ports": frozenset({80, 0})}, "ports must be from 1 to 65535, got 0"),
    ],
)
def test_impossible_limits_are_refused_by_name(terms, complaint):
    with pytest.raises(ValueError, match=complaint):
        ScopePolicy(**terms)
