"""What a session does with hosts that an earlier attempt may have asked, and what it tells a later one."""

from __future__ import annotations

from crawler.hostbook import HostBook
from crawler.simulate import simulate
from crawler.visit import Ask
from schemas.state import DomainRules, HostState
from tests.fakes.sessions import KEYS, NOW, Web, policy_of, run, session_of

A, B = "http://a.example", "http://b.example"
SLOW = {"status": 200, "body": b"User-agent: *\nCrawl-delay: 9\n"}


def host(name: str, **facts) -> HostState:
    return HostState(name, KEYS.host_key(name), name, **facts)


def untold(session, web: Web) -> list[tuple[str, float | None]]:
    """Return what each request of the session, run to its end, asks to be noted before it."""
    asked: list[tuple[str, float | None]] = []

    def answer(ask: Ask, now: float):
        asked.append((ask.request.url, ask.untold_delay_seconds))
        return web(ask, now)

    simulate(session, NOW, 4, answer)
    return asked


def test_a_crawl_delay_is_to_be_noted_before_the_first_page_of_its_host():
    web = Web({f"{A}/robots.txt": SLOW})
    assert untold(session_of(f"{A}/1", f"{A}/2"), web) == [
        (f"{A}/robots.txt", None),
        (f"{A}/1", 9.0),
        (f"{A}/2", None),
    ]


def test_a_crawl_delay_that_is_no_news_is_not_noted():
    web = Web({f"{A}/robots.txt": SLOW})
    known = session_of(f"{A}/1", hosts=[host("a.example", delay_seconds=9.0)])
    by_flag = session_of(f"{A}/1", policy=policy_of(delay=10.0))
    by_rule = session_of(f"{A}/1", rules={"a.example": DomainRules(min_delay_seconds=20.0)})
    for session in (known, by_flag, by_rule):
        assert [seconds for _, seconds in untold(session, web)] == [None, None]


def test_a_crawl_delay_that_a_journalled_row_holds_is_not_noted():
    book = HostBook({}, lambda name: DomainRules(), policy_of(), KEYS)
    book.hear_crawl_delay("a.example", 9.0)
    book.rest("a.example")
    assert [row.delay_seconds for row in book.changed()] == [9.0]
    assert book.untold_delay("a.example") is None
    book.hear_crawl_delay("a.example", 12.0)
    assert book.untold_delay("a.example") == 12.0
    assert book.untold_delay("a.example") is None


def test_after_a_takeover_each_host_gets_the_delay_that_was_noted():
    web = Web()
    hosts = [host("a.example", delay_seconds=30.0), host("b.example")]
    run(session_of(f"{A}/1", f"{B}/1", hosts=hosts, first_request_after=NOW), web)
    first = {url: start - NOW for start, _, url in reversed(web.log)}
    assert first[f"{A}/robots.txt"] == 30.0
    assert first[f"{B}/robots.txt"] == 2.0


def test_a_host_that_a_resumed_round_has_no_time_for_still_rests_in_the_next():
    hosts = [host("a.example", delay_seconds=30.0), host("b.example")]
    session = session_of(f"{A}/1", f"{B}/1", hosts=hosts, minutes=0.0, first_request_after=NOW)
    outcomes = run(session, Web())
    assert set(outcomes.values()) == {("deferred", "round_deadline")}
    rows = {row.host: row for row in session.changed_hosts()}
    assert {name: row.not_before_at for name, row in rows.items()} == {
        "a.example": NOW + 30.0,
        "b.example": NOW + 2.0,
    }
    assert all(row.last_fetch_at is None for row in rows.values())
