"""Sessions on the virtual clock: the lower bound, and the laws over random webs."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawler.redirects import open_chains
from crawler.robots import RobotsRules
from crawler.simulate import simulate, steady
from crawler.urls import authority_of, host_of
from crawler.visit import Ask, Finished, Reply, Settled, Wait
from tests.fakes.sessions import NOW, policy_of, session_of, state_of
from tests.fakes.skew import skewed


@pytest.mark.parametrize(
    ("workers", "delay", "cap"),
    [(16, 5.0, None), (16, 5.0, 60), (8, 5.0, 30), (4, 5.0, 60), (32, 0.5, 40), (16, 0.0, 40)],
)
def test_a_skewed_frontier_ends_near_the_lower_bound(workers, delay, cap):
    skew = skewed(4_000, 250, workers, delay, seed=7, cap=cap)
    result = simulate(skew.session, NOW, workers, steady(skew.latencies.__getitem__))
    assert 1.0 - 1e-9 <= (result.finished_at - NOW) / skew.bound_seconds <= 1.05
    assert Counter(row.kind for row in result.rows) == {"planned": skew.urls, "robots": 250}


def test_the_longest_hosts_start_first_whatever_their_priority():
    long = [state_of(f"http://long{n}.example/{page}", priority=0.0) for n in range(9) for page in range(90)]
    short = [state_of(f"http://s{n}.example/", priority=1.0) for n in range(90)]
    session = session_of(*short, *long, policy=policy_of(2.0, concurrency=2))
    first = [session.next_action(NOW) for _ in range(9)]
    assert {ask.host for ask in first} == {f"long{n}.example" for n in range(9)}


def test_high_priority_hosts_tend_to_start_first():
    items = [state_of(f"http://s{n}.example/", priority=(n % 4) / 3.01) for n in range(400)]
    policy = policy_of(2.0, concurrency=2)
    result = simulate(session_of(*items, policy=policy), NOW, 2, steady(lambda host: 0.5))
    starts = {row.url: row.started_at for row in result.rows if row.kind == "planned"}
    mean = [sum(starts[item.url] for item in items[level::4]) / 100 for level in range(4)]
    assert mean == sorted(mean, reverse=True)


STATUS = st.sampled_from([200] * 6 + [301, 302, 304, 404, 429, 500, 503])
TARGET = st.sampled_from(
    ["/p1", "/p2", "/new", "http://www.a.test/p1", "https://a.test/p3", "http://b.test/x", "mailto:x", None]
)
BODY = st.sampled_from(
    ["", "User-agent: *\nDisallow: /p1", "User-agent: *\nCrawl-delay: 7", "User-agent: *\nDisallow: /"]
)
ANSWER = st.fixed_dictionaries(
    {
        "status": STATUS,
        "location": TARGET,
        "failure": st.sampled_from([None] * 6 + ["timeout", "private_address"]),
        "latency": st.sampled_from([0.0, 0.3, 4.0, 40.0]),
        "retry_after": st.sampled_from([None, "0", "30", "9000"]),
        "body": BODY,
    }
)
HOSTS = ("http://a.test", "https://a.test", "http://www.a.test", "http://b.test")
WEB = st.fixed_dictionaries(
    {
        "urls": st.lists(
            st.tuples(st.sampled_from(HOSTS), st.integers(0, 6), st.sampled_from([0.0, 0.4, 1.0])),
            min_size=1,
            max_size=25,
        ),
        "answers": st.lists(ANSWER, min_size=1, max_size=12),
        "workers": st.integers(1, 4),
        "delay": st.sampled_from([0.0, 1.0, 3.0]),
        "minutes": st.sampled_from([0.2, 2.0, 60.0]),
    }
)


class RandomWeb:
    """Gives each URL its own answer, and checks at every request what must hold then."""

    def __init__(self, spec, deadline_at: float) -> None:
        self.spec = spec
        self.deadline_at = deadline_at
        self.ended: dict[str, float] = {}
        self.in_hand: set[str] = set()
        self.asked: Counter[tuple[str, str]] = Counter()
        self.robots: dict[str, RobotsRules | None] = {}
        self.crawl_delay: dict[str, float] = {}
        self.not_before: dict[str, float] = {}

    def reply(self, ask: Ask, now: float) -> Reply:
        url, host = ask.request.url, ask.host
        assert host == host_of(url)
        assert host not in self.in_hand, "two requests to one host at once"
        delay = max(self.spec["delay"], self.crawl_delay.get(host, 0.0))
        assert now >= self.ended.get(host, -1e9) + delay, "gap below the delay"
        assert now >= self.not_before.get(host, 0.0), "asked before the pause is over"
        assert now < self.deadline_at
        if ask.kind != "robots":
            assert authority_of(url) in self.robots, "asked before its robots.txt"
            rules = self.robots[authority_of(url)]
            assert rules is None or rules.verdict(url).allowed, "asked against robots.txt"
        self.asked[ask.kind, url] += 1
        self.in_hand.add(host)
        facts = dict(self.spec["answers"][sum(url.encode()) % len(self.spec["answers"])])
        end = now + facts.pop("latency")
        body = facts.pop("body").encode()
        if facts["failure"]:
            return Reply(now, end, failure=facts["failure"])
        return Reply(now, end, **facts, body=body if ask.kind == "robots" else b"")

    def end(self, ask: Ask, reply: Reply) -> None:
        self.in_hand.discard(ask.host)
        if reply.failure != "private_address":
            self.ended[ask.host] = reply.finished_at
        if reply.status in (429, 503):
            pause = 54.0 if reply.retry_after is None else float(reply.retry_after)
            self.not_before[ask.host] = reply.finished_at + pause

    def learn(self, session) -> None:
        for state in session.changed_robots():
            if state.access != "deny":
                rules = RobotsRules(state.body, "roundcrawl") if state.access == "rules" else None
                self.robots[state.authority] = rules
                host = host_of(f"{state.authority}/")
                pause = rules.crawl_delay_seconds if rules else None
                self.crawl_delay[host] = max(self.crawl_delay.get(host, 0.0), pause or 0.0)


def drive(session, web: RandomWeb, workers: int, stop_after: int | None = None):
    """Run a session against a web, or stop and cut it after some requests; return its rows."""
    now, rows, flights = NOW, [], []
    while True:
        action = session.next_action(now) if len(flights) < workers else Wait(None)
        if isinstance(action, Ask):
            flights.append((action, web.reply(action, now)))
            if stop_after is not None and sum(web.asked.values()) >= stop_after:
                session.stop()
                for ask, _ in flights:
                    session.abandon(ask.ticket, now)
                    web.in_hand.discard(ask.host)
                    web.asked[ask.kind, ask.request.url] -= 1
                    web.ended[ask.host] = now
                assert session.next_action(now) == Finished()
                return rows, now
        elif isinstance(action, Settled):
            rows += action.rows
        elif isinstance(action, Finished):
            assert not flights
            return rows, now
        else:
            flights.sort(key=lambda flight: (flight[1].finished_at, flight[0].ticket))
            if flights and (action.until is None or flights[0][1].finished_at <= action.until):
                ask, reply = flights.pop(0)
                now = max(now, reply.finished_at)
                web.end(ask, reply)
                rows += session.finish(ask.ticket, reply, now)
                web.learn(session)
            else:
                assert action.until is not None, "waits for a request, but none is in hand"
                assert action.until > now, "a wait that is over would spin"
                now = action.until


def settings_of(spec):
    items = [state_of(f"{host}/p{page}", priority=priority) for host, page, priority in spec["urls"]]
    return items, {"policy": policy_of(spec["delay"]), "minutes": spec["minutes"]}


def check(rows, items, web: RandomWeb) -> None:
    planned = [row.url for row in rows if row.kind == "planned"]
    assert sorted(planned) == sorted({item.url for item in items}), "each planned URL has one planned row"
    pages = [row.url for row in rows if row.kind != "robots"]
    assert len(pages) == len(set(pages)), "no URL has two rows"
    attempts = [web.asked["planned", url] + web.asked["hop", url] for url in pages]
    assert max(attempts, default=0) <= 1, "at most one attempt a URL"
    for row in rows:
        assert (row.outcome == "fetched") == (row.reason is None)
        assert (row.outcome in ("deferred", "robots_denied")) <= (row.started_at is None)
        if row.reason == "redirect_followed" and row.kind != "robots":
            assert row.redirect_url in pages, "a followed redirect has a row for its target"


@settings(max_examples=300)
@given(WEB)
def test_laws_of_a_session_over_random_webs(spec):
    items, options = settings_of(spec)
    session = session_of(*items, **options)
    web = RandomWeb(spec, session.deadline_at)
    rows, now = drive(session, web, spec["workers"])
    check(rows, items, web)
    assert now <= session.deadline_at + 40.0, "no longer than one request past the deadline"
    assert session.progress() == (len({item.url for item in items}),) * 2 + (0, 0)


@settings(max_examples=200)
@given(WEB, st.integers(1, 12))
def test_a_session_that_was_cut_goes_on_where_its_journal_ends(spec, stop_after):
    items, options = settings_of(spec)
    first = session_of(*items, **options)
    web = RandomWeb(spec, first.deadline_at)
    rows, now = drive(first, web, spec["workers"], stop_after)
    done = {row.url for row in rows if row.kind != "robots"}
    second = session_of(
        *items,
        **options,
        hosts=first.changed_hosts(),
        first_request_after=now,
        done=done,
        chains=open_chains(rows),
    )
    web.robots.clear()
    more, _ = drive(second, web, spec["workers"])
    check([*rows, *more], items, web)
