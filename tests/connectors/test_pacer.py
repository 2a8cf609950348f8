"""Turns at addresses: apart whatever the hosts, with one thread at most waiting for each."""

from __future__ import annotations

import threading
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors import pacer as pacer_module
from connectors.clock import SystemClock
from connectors.dns import Addresses
from connectors.pacer import AddressPacer, Postponed
from schemas.fetch import Capture, FetchFailure, FetchRequest
from tests.fakes.clock import FakeClock
from tests.fakes.fetching import make_fetcher
from tests.fakes.raw_server import Peer, RawServer, answers

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


def test_turns_at_one_address_are_apart_and_others_need_not_wait() -> None:
    clock = FakeClock()
    pacer = AddressPacer(0.5, clock)
    assert pacer.take("192.0.2.1") == 0.0
    assert pacer.take("192.0.2.2") == 0.0
    assert pacer.seconds_left("192.0.2.1") == 0.5
    clock.advance(0.2)
    assert pacer.take("192.0.2.1") == pytest.approx(0.3)
    assert clock.monotonic() == 0.5


def test_the_pause_counts_from_when_the_request_went_out() -> None:
    clock = FakeClock()
    pacer = AddressPacer(0.5, clock)
    pacer.take("192.0.2.1")
    clock.advance(0.3)
    pacer.sending("192.0.2.1")
    assert pacer.seconds_left("192.0.2.1") == 0.5


def test_a_turn_far_off_is_not_waited_for() -> None:
    clock = FakeClock()
    pacer = AddressPacer(5.0, clock)
    pacer.take("192.0.2.1")
    assert pacer.take("192.0.2.1") is None
    clock.advance(4.5)
    assert pacer.take("192.0.2.1") == 0.5


def test_only_one_waits_for_an_address() -> None:
    clock = FakeClock()
    pacer = AddressPacer(0.5, clock)
    others: list[float | None] = []
    pacer.take("192.0.2.1")
    clock.after(0.1, lambda: others.append(pacer.take("192.0.2.1")))
    clock.after(0.2, lambda: pacer.sending("192.0.2.1"))
    assert pacer.take("192.0.2.1") == 0.7, "what went out meanwhile moves the turn"
    assert others == [None]


@pytest.mark.parametrize(
    "pacer",
    [AddressPacer(0.0, FakeClock()), AddressPacer(5.0, FakeClock(), exempt=("192.0.2.1",))],
)
def test_no_pause_is_no_wait(pacer: AddressPacer) -> None:
    for _ in range(3):
        assert pacer.take("192.0.2.1") == 0.0
        pacer.sending("192.0.2.1")


@pytest.mark.parametrize("delay", [-1.0, float("inf"), float("nan")])
def test_a_pause_is_a_number_of_seconds(delay: float) -> None:
    with pytest.raises(ValueError, match="delay_seconds must be 0 or more, got"):
        AddressPacer(delay, FakeClock())


def test_addresses_of_long_ago_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacer_module, "FORGET_ABOVE", 10)
    clock = FakeClock()
    pacer = AddressPacer(0.5, clock)
    for number in range(1000):
        pacer.take(f"192.0.2.{number}")
        clock.advance(0.1)
    assert len(pacer._turns) <= 12


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from([0.0, 0.1, 0.3, 0.5, 2.0])), max_size=40))
def test_whatever_comes_when_turns_are_apart(requests: list[tuple[int, float]]) -> None:
    clock = FakeClock()
    pacer = AddressPacer(0.5, clock)
    starts: dict[str, list[float]] = {}
    for number, pause in requests:
        clock.advance(pause)
        if pacer.take(f"192.0.2.{number}") is not None:
            starts.setdefault(f"192.0.2.{number}", []).append(clock.monotonic())
    assert all(
        later - earlier >= 0.5 - 1e-9 for times in starts.values() for earlier, later in pairwise(times)
    )


class OneAddress:
    """A resolver for which every name is one address, or one of several in turn."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = addresses

    def resolve(self, host: str, timeout_seconds: float | None = None) -> Addresses:
        return Addresses(self.addresses)


def test_a_fetch_whose_address_is_busy_sends_nothing() -> None:
    with RawServer(answers(OK, OK)) as server:
        clock = FakeClock()
        fetcher = make_fetcher(resolver=OneAddress("127.0.0.1"), pacer=AddressPacer(5.0, clock))
        assert isinstance(fetcher.fetch(FetchRequest(server.url(host="a.example"))), Capture)
        url = server.url(host="b.example")
        assert fetcher.fetch(FetchRequest(url)) == Postponed(url, "127.0.0.1", 5.0)
        assert (server.connections, len(server.requests)) == (1, 1)


def test_the_wait_for_a_turn_is_no_latency_and_takes_nothing_of_the_time_for_the_fetch() -> None:
    with RawServer(answers(OK, OK)) as server:
        pacer = AddressPacer(0.6, SystemClock())
        fetcher = make_fetcher(
            resolver=OneAddress("127.0.0.1"), pacer=pacer, fetch_timeout_seconds=0.5, read_timeout_seconds=0.5
        )
        captures = [fetcher.fetch(FetchRequest(server.url(host=f"{name}.example"))) for name in "ab"]
        assert all(isinstance(capture, Capture) for capture in captures)
        assert captures[1].started_at - captures[0].started_at >= 0.59
        assert captures[1].finished_at - captures[1].started_at < 0.3


def test_a_kept_connection_waits_for_its_turn_too() -> None:
    with RawServer(answers(OK, OK)) as server:
        clock = FakeClock()
        fetcher = make_fetcher(resolver=OneAddress("127.0.0.1"), pacer=AddressPacer(5.0, clock))
        request = FetchRequest(server.url(host="a.example"))
        assert isinstance(fetcher.fetch(request), Capture)
        assert isinstance(fetcher.fetch(request), Postponed)
        clock.advance(5.0)
        assert isinstance(fetcher.fetch(request), Capture)
        assert server.connections == 1


def test_the_second_address_needs_a_turn_of_its_own() -> None:
    with RawServer(answers(OK, OK), address="127.0.0.2") as server:
        clock = FakeClock()
        pacer = AddressPacer(5.0, clock)
        fetcher = make_fetcher(resolver=OneAddress("127.0.0.3", "127.0.0.2"), pacer=pacer)
        request = FetchRequest(f"http://two.example:{server.port}/")
        assert isinstance(fetcher.fetch(request), Capture)
        fetcher.close_host("two.example")
        clock.advance(4.5)
        pacer.take("127.0.0.2")
        clock.advance(1.0)
        failure = fetcher.fetch(request)
        assert isinstance(failure, FetchFailure), "the first refuses, and it is not the second's turn"
        assert failure.reason == "connection_refused"
        assert len(server.requests) == 1


class NotedPacer(AddressPacer):
    """Notes the instant from which each request's pause counts; a busy machine cannot blur it."""

    def __init__(self, delay_seconds: float) -> None:
        super().__init__(delay_seconds, SystemClock())
        self.sent: list[float] = []

    def sending(self, address: str) -> None:
        super().sending(address)
        self.sent.append(self._turns_of(address).free_at)


def test_many_threads_at_one_address_send_apart() -> None:
    def answer(peer: Peer) -> None:
        while peer.read_request():
            peer.send(OK)

    pacer = NotedPacer(0.05)
    with RawServer(answer) as server:
        fetcher = make_fetcher(resolver=OneAddress("127.0.0.1"), pacer=pacer)
        outcomes: list[object] = []

        def visit(number: int) -> None:
            while isinstance(
                outcome := fetcher.fetch(FetchRequest(server.url(host=f"h{number}"))), Postponed
            ):
                SystemClock().wait(outcome.seconds)
            outcomes.append(outcome)

        threads = [threading.Thread(target=visit, args=(number,)) for number in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [type(outcome) for outcome in outcomes] == [Capture] * 12
    assert all(later - earlier >= 0.05 for earlier, later in pairwise(pacer.sent))
