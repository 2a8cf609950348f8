"""The two banks of queues: one trace event by event, then laws over random histories."""

from __future__ import annotations

from collections import Counter
from heapq import heappop, heappush

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawler.workbench import NAP_SECONDS, LevelSelector, Workbench, queue_count

DELAY = 2.0


def bench_of(*urls: str, queues: int = 4, **kwargs) -> Workbench[str]:
    bench: Workbench[str] = Workbench(queues, **kwargs)
    for url in urls:
        bench.add(url.split("/")[0], url)
    return bench


def test_trace_of_three_workers_and_four_back_queues():
    bench = bench_of("wiki/Cat", "wiki/Dog", "apple/mac", "nike/shoes", "bbc/news")
    assert bench.acquire(0.0) == ("wiki", "wiki/Cat", 1)
    assert bench.acquire(0.0) == ("apple", "apple/mac", 2)
    assert bench.acquire(0.0) == ("nike", "nike/shoes", 3)

    bench.release("nike", 0.3 + DELAY, 0.3)
    assert bench.acquire(0.3) == ("bbc", "bbc/news", 4)

    bench.release("wiki", 0.4 + DELAY, 0.4)
    assert bench.acquire(0.4) is None
    assert bench.waiting == 1
    assert bench.wake_at() == 2.3

    assert bench.acquire(2.39) is None
    assert bench.wake_at() == 2.4
    assert bench.acquire(2.4) == ("wiki", "wiki/Dog", 1)


def test_returning_host_waits_out_its_delay_while_its_place_is_wanted():
    bench = bench_of("wiki/Cat", "wiki/Dog", "apple/mac", "nike/shoes", "bbc/news")
    for _ in range(3):
        bench.acquire(0.0)
    bench.release("nike", 0.3 + DELAY, 0.3)
    bench.acquire(0.3)
    bench.add("cnn", "cnn/front")
    bench.release("wiki", 0.4 + DELAY, 0.4)
    assert bench.acquire(0.5) is None, "four queues, four hosts: cnn waits for a cooldown to end"
    bench.add("nike", "nike/boots")
    assert bench.acquire(0.9) is None
    assert bench.acquire(2.29) is None
    assert bench.acquire(2.3) == ("nike", "nike/boots", 3)
    bench.release("nike", 2.6 + DELAY, 2.6)
    assert bench.acquire(2.6) == ("wiki", "wiki/Dog", 1)
    assert bench.acquire(4.59) is None
    assert bench.acquire(4.6) == ("cnn", "cnn/front", 3), "now the empty queue has cooled down"


def test_host_known_from_before_takes_its_own_instant():
    bench = bench_of("a/1", "b/1")
    bench.rest("a", 7.0)
    assert bench.acquire(0.0).item == "b/1"
    assert bench.acquire(6.9) is None
    assert bench.acquire(7.0).item == "a/1"


def test_host_that_naps_gives_up_its_queue_and_keeps_its_timer():
    bench = bench_of("a/1", "a/2", "b/1", queues=1)
    bench.acquire(0.0)
    wake = 1.0 + NAP_SECONDS + 1.0
    bench.release("a", wake, 1.0)
    assert bench.acquire(1.0).host == "b", "the only queue goes to b while a naps"
    bench.release("b", 3.0, 2.0)
    bench.add("a", "a/3")
    assert bench.acquire(wake - 0.1) is None
    assert bench.wake_at() == wake
    assert bench.acquire(wake).item == "a/2"
    bench.release("a", wake, wake)
    assert bench.acquire(wake).item == "a/3"


def test_host_that_comes_back_during_a_nap_with_nothing_queued_still_naps():
    bench = bench_of("a/1")
    bench.acquire(0.0)
    bench.release("a", 1_000.0, 1.0)
    bench.add("a", "a/2")
    assert bench.acquire(999.0) is None
    assert bench.acquire(1_000.0).item == "a/2"


def test_napping_host_does_not_wake_the_caller_while_no_queue_is_free():
    bench = bench_of("a/1", "a/2", "b/1", queues=1)
    bench.acquire(0.0)
    bench.release("a", 100.0, 0.0)
    bench.acquire(0.0)
    assert bench.acquire(200.0) is None
    assert bench.wake_at() is None, "only the release of b helps"


def test_hosts_of_one_address_start_apart_and_in_turn():
    bench = bench_of("a/1", "b/1", "c/1", "d/1", ip_delay_seconds=0.5)
    for host in "abc":
        bench.locate(host, "192.0.2.1")
    assert bench.acquire(0.0).host == "a"
    assert bench.acquire(0.0).host == "d", "another address need not wait"
    assert bench.acquire(0.49) is None
    assert bench.wake_at() == 0.5
    assert bench.acquire(0.5).host == "b"
    assert bench.acquire(0.5) is None
    assert bench.acquire(1.0).host == "c"


def test_a_crowd_behind_one_address_leaves_the_others_their_queues():
    crowd = [f"crowd{n}/1" for n in range(100)]
    bench = bench_of(*crowd, "other/1", queues=12, ip_delay_seconds=0.5)
    for url in crowd:
        bench.locate(url.split("/")[0], "192.0.2.1")
    now, served = 0.0, []
    while bench.waiting:
        while grant := bench.acquire(now):
            served.append((now, grant.host))
            bench.release(grant.host, now + 0.1, now)
        now = bench.wake_at() if bench.waiting else now
    hosts = [host for _, host in served]
    assert served[hosts.index("other")] == (0.0, "other")
    assert [at for at, host in served if host != "other"] == [0.5 * n for n in range(100)]
    assert [host for host in hosts if host != "other"] == [f"crowd{n}" for n in range(100)]


def test_hosts_that_came_first_are_served_first_however_eager_the_others_return():
    bench = bench_of(*(f"h{n}/{item}" for n in range(8) for item in range(3)), queues=9, ip_delay_seconds=1.0)
    for n in range(8):
        bench.locate(f"h{n}", "192.0.2.1")
    now, hosts = 0.0, []
    while bench.waiting:
        while grant := bench.acquire(now):
            hosts.append(grant.host)
            bench.release(grant.host, now, now)
        now = bench.wake_at() if bench.waiting else now
    assert now == 23.0
    assert set(hosts[:10]) == {f"h{n}" for n in range(8)}, "none is passed over again and again"


def test_first_items_go_before_the_rest():
    bench = bench_of("a/1", "a/2")
    grant = bench.acquire(0.0)
    bench.add_first("a", grant.item)
    bench.add_first("a", "a/robots.txt")
    order = []
    for _ in range(3):
        bench.release("a", 0.0, 0.0)
        order.append(bench.acquire(0.0).item)
    assert order == ["a/robots.txt", "a/1", "a/2"]


def test_drained_host_hands_out_nothing_and_keeps_its_timer():
    bench = bench_of("a/1", "a/2", "a/3")
    bench.acquire(0.0)
    assert bench.drain("a") == ["a/2", "a/3"]
    assert bench.waiting == 0
    bench.release("a", 5.0, 1.0)
    bench.add("a", "a/4")
    assert bench.acquire(4.9) is None
    assert bench.acquire(5.0).item == "a/4"


def test_misuse_is_an_error():
    bench = bench_of("a/1")
    with pytest.raises(ValueError, match="1 or more"):
        Workbench(0)
    bench.acquire(0.0)
    bench.release("a", 1.0, 0.0)
    with pytest.raises(ValueError, match="released twice"):
        bench.release("a", 1.0, 0.0)
    with pytest.raises(ValueError, match="handed out"):
        bench.rest("a", 9.0)


@pytest.mark.parametrize(
    ("hosts", "workers", "delay", "latency", "expected"),
    [(10_000, 128, 5.0, 0.5, 1760), (500, 128, 5.0, 0.5, 500), (2, 4, 5.0, 0.5, 12), (100, 4, 0.0, 0.0, 12)],
)
def test_queue_count(hosts, workers, delay, latency, expected):
    assert queue_count(hosts, workers, delay, latency) == expected


def test_selector_prefers_the_high_levels_and_forgets_none():
    choose = LevelSelector(5, "seed").choose
    seen = Counter(choose([0, 1, 2, 3, 4]) for _ in range(31_000))
    for level in range(5):
        assert seen[level] == pytest.approx(1_000 * 2 ** (4 - level), rel=0.15)


def test_selector_is_reproducible():
    def draws(seed: str) -> list[int]:
        choose = LevelSelector(4, seed).choose
        return [choose([0, 1, 3]) for _ in range(50)]

    assert draws("a") == draws("a")
    assert draws("a") != draws("b")


def test_no_level_starves_while_a_higher_one_never_runs_dry():
    bench: Workbench[str] = Workbench(1, levels=4, seed="s")
    for level in (1, 2, 3):
        bench.add(f"low{level}", f"low{level}", level)
    served = set()
    for turn in range(400):
        bench.add(f"high{turn}", "high", 0)
        grant = bench.acquire(float(turn))
        served.add(grant.item)
        bench.release(grant.host, float(turn), float(turn))
    assert served == {"high", "low1", "low2", "low3"}


HISTORY = st.fixed_dictionaries(
    {
        "arrivals": st.lists(
            st.tuples(st.integers(0, 300), st.integers(0, 7), st.integers(0, 3)), min_size=1, max_size=60
        ),
        "latencies": st.lists(st.sampled_from([0.0, 0.1, 0.5, 3.0, 20.0]), min_size=1, max_size=5),
        "delays": st.lists(st.sampled_from([0.0, 0.5, 2.0, 10.0, 70.0, 500.0]), min_size=1, max_size=5),
        "workers": st.integers(1, 4),
        "queues": st.integers(1, 6),
        "addresses": st.integers(1, 8),
        "known": st.dictionaries(st.integers(0, 7), st.sampled_from([1.0, 30.0, 90.0]), max_size=3),
        "seed": st.text(max_size=3),
    }
)


def run(history) -> list[tuple[float, float, str, int, float]]:
    """Drive a workbench on a virtual clock; return (start, end, host, item, delay), one per hand-out."""
    bench: Workbench[int] = Workbench(
        history["queues"], levels=4, seed=history["seed"], ip_delay_seconds=0.25
    )
    for host in range(8):
        bench.locate(f"h{host}", f"192.0.2.{host % history['addresses']}")
    for host, instant in history["known"].items():
        bench.rest(f"h{host}", instant)
    events: list[tuple[float, int, str, object]] = []
    for number, (tenths, host, level) in enumerate(history["arrivals"]):
        heappush(events, (tenths / 10, number, "arrive", (f"h{host}", number, level)))
    log, idle, sequence = [], history["workers"], len(events)
    while events:
        now, _, kind, what = heappop(events)
        if kind == "arrive":
            bench.add(*what)
        elif kind == "end":
            host, delay = what
            bench.release(host, now + delay, now)
            idle += 1
        while idle and (grant := bench.acquire(now)):
            idle -= 1
            latency = history["latencies"][grant.item % len(history["latencies"])]
            delay = history["delays"][grant.item % len(history["delays"])]
            log.append((now, now + latency, grant.host, grant.item, delay))
            sequence += 1
            heappush(events, (now + latency, sequence, "end", (grant.host, delay)))
        wake = bench.wake_at()
        if idle and bench.waiting and wake is not None:
            assert wake > now, "a wake-up that has passed would spin"
            sequence += 1
            heappush(events, (wake, sequence, "wake", None))
    assert bench.waiting == 0
    return log


@settings(max_examples=500)
@given(HISTORY)
def test_laws_of_the_workbench(history):
    log = run(history)
    assert sorted(item for *_, item, _ in log) == list(range(len(history["arrivals"]))), "each exactly once"
    last: dict[str, tuple[float, float]] = {}
    address_started: dict[int, float] = {}
    for start, end, host, _, delay in log:
        if host in last:
            ended, wanted = last[host]
            assert start >= ended + wanted, "gap below the delay, or two in flight"
        else:
            assert start >= history["known"].get(int(host[1:]), 0.0)
        last[host] = (end, delay)
        address = int(host[1:]) % history["addresses"]
        assert start >= address_started.get(address, -1.0) + 0.25
        address_started[address] = start


@given(HISTORY)
def test_same_history_same_order(history):
    assert run(history) == run(history)
