"""Traps: each family without end is cut after a bounded number of pages, and deep sites are not."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawler.scope import LinkContext, ScopePolicy, admit
from crawler.urls import NormalUrl, normalise, split
from schemas.state import DomainRules

NOW = datetime(2026, 11, 30, tzinfo=UTC).timestamp()


def reason_for(url, depth=1, policy=None, now=NOW):
    return admit(
        LinkContext(url, split(url), depth, None, DomainRules(), policy or ScopePolicy(), now)
    ).reason


def pages_wasted(first, follow, deepest=10_000):
    """Crawl a trap that links from each page to the next; return how many of its pages were admitted."""
    url, wasted = normalise(first), 0
    while isinstance(url, NormalUrl) and wasted < deepest and reason_for(url.url, depth=1) is None:
        wasted += 1
        following = normalise(follow(url.url), url.url)
        if following == url:
            break
        url = following
    return wasted


def test_relative_links_that_pile_up():
    assert pages_wasted("http://h.example/shop/", lambda url: "shop/") == 2
    assert pages_wasted("http://h.example/a/b/", lambda url: "a/b/") == 2
    assert pages_wasted("http://h.example/x/", lambda url: "images/../y/x/") == 2


def test_links_without_their_scheme():
    assert pages_wasted("http://www.h.example/", lambda url: "www.h.example/page/") == 2


def test_slashes_that_pile_up():
    assert pages_wasted("http://h.example/a", lambda url: url.rstrip("/") + "/" * (url.count("/") - 1)) <= 20


def test_a_path_that_grows_with_fresh_segments():
    count = iter(range(1000))
    assert pages_wasted("http://h.example/s/", lambda url: f"{next(count)}-x/") == 20


def test_a_calendar_forward_and_back():
    def month(step):
        def follow(url):
            year, number = map(int, url.split("/")[-2:])
            index = year * 12 + number - 1 + step
            return f"/calendar/{index // 12}/{index % 12 + 1}"

        return follow

    assert pages_wasted("http://h.example/calendar/2026/12", month(1)) == 24
    assert pages_wasted("http://h.example/calendar/2026/12", month(-1)) == 242


def test_escapes_of_escapes():
    assert pages_wasted("http://h.example/a%20b", lambda url: url.replace("%", "%25")) == 2
    assert pages_wasted("http://h.example/?a=1&b=2", lambda url: url.replace("&", "&amp;")) == 1
    assert pages_wasted("http://h.example/?q=a%26b", lambda url: url.replace("%26", "%26amp%3B")) <= 2


def test_session_ids_make_no_new_pages():
    count = iter(range(1000))
    assert pages_wasted("http://h.example/", lambda url: f"/;jsessionid={next(count):032x}") == 1


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://h.example/css/a/css/b/css/", "trap_repeating_path"),
        ("http://h.example/a/a/a", "trap_repeating_path"),
        ("http://h.example/12345/12345/12345/", "trap_repeating_path"),
        ("http://h.example/h.example/h.example/", "trap_repeating_path"),
        ("http://h.example" + "/x%d" * 21 % tuple(range(21)), "trap_path_segments"),
        ("http://h.example/a%25252525", "trap_reencoding"),
        ("http://h.example/?u=http%252525253A", "trap_reencoding"),
        ("http://h.example/&amp;amp;amp;", "trap_reencoding"),
        ("http://h.example/calendar/2029/01", "trap_calendar"),
        ("http://h.example/calendar/2029/01/31/list", "trap_calendar"),
        ("http://h.example/events/9999/12/", "trap_calendar"),
        ("http://h.example/2031-05", "trap_calendar"),
        ("http://h.example/2031/05/index.html", "trap_calendar"),
        ("http://h.example/agenda/1999/01/31", "trap_calendar"),
        ("http://h.example/?date=2035-01-01", "trap_calendar"),
        ("http://h.example/?date=20350101", "trap_calendar"),
        ("http://h.example/?start=1890-01-01T00:00:00", "trap_calendar"),
        ("http://h.example/?month=2035-01", "trap_calendar"),
        ("http://h.example/?d=2035%2F01%2F01", "trap_calendar"),
        ("http://h.example/?month=1&year=2035", "trap_calendar"),
        ("http://h.example/?m=0&y=1800", "trap_calendar"),
        ("http://h.example/?page=10001", "trap_counter"),
        ("http://h.example/?currentPage=99999", "trap_counter"),
        ("http://h.example/?page=" + "9" * 500, "trap_counter"),
        ("http://h.example/list/page/123456/", "trap_counter"),
        ("http://h.example/list/page-123456.html", "trap_counter"),
        ("http://h.example/?offset=100001", "trap_counter"),
        ("http://h.example/?limitstart=5000000", "trap_counter"),
    ],
)
def test_traps_have_names(url, reason):
    assert reason_for(url) == reason


@pytest.mark.parametrize(
    "url",
    [
        "http://h.example/docs/v2/guide/part-1/chapter-2/section-3/topic-4/figure-5/detail-6/note-7/en/print",
        "http://h.example" + "/s%d" * 20 % tuple(range(20)),
        "http://h.example" + "/s%d" * 20 % tuple(range(20)) + "/",
        "http://h.example/org/apache/beam/org/apache/spark/",
        "http://h.example/2011/11/11/11/",
        "http://h.example/1/1/1/1",
        "http://h.example/example/example/",
        "http://h.example/h.example/",
        "http://h.example/a%2520b",
        "http://h.example/login?next=http%253A%252F%252Fx",
        "http://h.example/stamps/amplifier?camp=amp",
        "http://h.example/calendar/2028/11",
        "http://h.example/calendar/2007/01",
        "http://h.example/1851/09/18/news/first-issue.html",
        "http://h.example/1851/09/",
        "http://h.example/events/1999/05/12/a-concert",
        "http://h.example/2049/05/a-story-of-the-future",
        "http://h.example/thread/2345/12",
        "http://h.example/product/5500-10",
        "http://h.example/films?year=1950",
        "http://h.example/?born=1950-05-12",
        "http://h.example/?sku=2099-13",
        "http://h.example/?p=123456",
        "http://h.example/?id=99999999",
        "http://h.example/?page=10000",
        "http://h.example/page/10000",
        "http://h.example/?offset=100000",
        "http://h.example/?page=next",
        "http://h.example/?start=",
        "http://h.example/homepage/123456",
    ],
)
def test_what_only_looks_like_a_trap_is_admitted(url):
    assert reason_for(url) is None


def test_every_page_of_a_deep_site_is_admitted():
    path = ""
    for depth in range(1, 20):
        path += f"/level-{depth}"
        for page in range(5):
            assert reason_for(f"http://deep.example{path}/page-{page}.html", depth=depth) is None


def test_now_moves_the_calendar():
    url = "http://h.example/calendar/2029/01"
    assert reason_for(url, now=NOW) == "trap_calendar"
    assert reason_for(url, now=NOW + 2 * 365 * 86_400) is None


def test_limits_are_the_operators():
    long_urls = ScopePolicy(max_url_length=10_000)
    assert reason_for("http://h.example/?page=" + "9" * 5_000, policy=long_urls) == "trap_counter"
    policy = ScopePolicy(max_segment_repeats=5, max_page_number=50, calendar_years_ahead=100)
    assert reason_for("http://h.example/a/a/a", policy=policy) is None
    assert reason_for("http://h.example/?page=51", policy=policy) == "trap_counter"
    assert reason_for("http://h.example/calendar/2050/01", policy=policy) is None


REASONS = {
    None,
    "unsupported_port",
    "url_too_long",
    "excluded_extension",
    "trap_path_segments",
    "trap_repeating_path",
    "trap_reencoding",
    "trap_calendar",
    "trap_counter",
}
PIECES = [
    *"/?&=-.;",
    "page",
    "year=",
    "m=",
    "date=",
    "calendar",
    "2031",
    "05",
    "99999",
    "%2525",
    "amp;",
    ".zip",
    "a",
    "é",
]


@settings(max_examples=1000)
@given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=3)), max_size=24).map("".join))
def test_any_url_gets_one_verdict_and_always_the_same(tail):
    url = normalise(f"http://h.example/{tail}")
    assert isinstance(url, NormalUrl)
    assert reason_for(url.url) in REASONS
    assert reason_for(url.url) == reason_for(url.url)
