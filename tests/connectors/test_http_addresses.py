"""Which addresses are connected to: asserted at listeners that must stay silent."""

from __future__ import annotations

import pytest

from connectors.dns import Addresses, DnsFailure
from schemas.fetch import Capture, FetchFailure, FetchRequest
from tests.fakes.fetching import make_fetcher
from tests.fakes.raw_server import RawServer, answers

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


class StubResolver:
    """Answers each question with the next of a list of address tuples, the last for ever."""

    def __init__(self, *answers: tuple[str, ...] | DnsFailure) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []

    def resolve(self, host: str, timeout_seconds: float | None = None) -> Addresses | DnsFailure:
        self.asked.append(host)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return answer if isinstance(answer, DnsFailure) else Addresses(answer)


def private_but(public: str):
    """Return a verdict for which all of loopback is private except ``public``."""
    return lambda address: None if address == public else "loopback"


def test_private_addresses_are_refused_before_any_connection():
    with RawServer(answers(OK)) as server:
        for host in ("127.0.0.1", "localhost", "127.0.0.2", "rebound.localhost"):
            failure = make_fetcher(allow_private=False).fetch(FetchRequest(server.url(host=host)))
            assert isinstance(failure, FetchFailure)
            assert failure.reason == "private_address"
            assert failure.ip in failure.detail
        assert server.connections == 0


def test_refusal_names_the_address_and_why():
    failure = make_fetcher(allow_private=False).fetch(FetchRequest("http://127.0.0.1/"))
    assert (failure.detail, failure.ip) == ("127.0.0.1: loopback", "127.0.0.1")


def test_private_addresses_are_asked_when_allowed():
    with RawServer(answers(OK)) as server:
        assert isinstance(make_fetcher(allow_private=True).fetch(FetchRequest(server.url())), Capture)


def test_a_rule_that_names_the_address_allows_it():
    with RawServer(answers(OK)) as server:
        fetcher = make_fetcher(allow_private=False, rules=(f"pinned.example:80:127.0.0.1:{server.port}",))
        capture = fetcher.fetch(FetchRequest("http://pinned.example/"))
        assert isinstance(capture, Capture)
        assert capture.ip == "127.0.0.1"
        assert b"\r\nHost: pinned.example\r\n" in server.requests[0]


@pytest.mark.parametrize("rule", ["localhost:::{port}", ":::{port}", "localhost:80::{port}"])
def test_a_rule_that_changes_only_the_port_allows_no_address(rule):
    with RawServer(answers(OK)) as server:
        fetcher = make_fetcher(allow_private=False, rules=(rule.format(port=server.port),))
        failure = fetcher.fetch(FetchRequest("http://localhost/"))
        assert isinstance(failure, FetchFailure)
        assert (failure.reason, server.connections) == ("private_address", 0)


def test_the_socket_goes_to_the_address_that_was_checked_without_asking_again():
    resolver = StubResolver(("127.0.0.2",), ("127.0.0.1",))
    with RawServer(answers(OK), address="127.0.0.1") as silent:
        fetcher = make_fetcher(False, resolver=resolver, verdict=private_but("127.0.0.2"))
        outcome = fetcher.fetch(FetchRequest(f"http://rebind.example:{silent.port}/"))
        assert isinstance(outcome, FetchFailure)
        assert (outcome.reason, outcome.ip) == ("connection_refused", "127.0.0.2")
        assert (silent.connections, resolver.asked) == (0, ["rebind.example"])


def test_a_kept_connection_is_not_used_once_the_name_points_elsewhere():
    resolver = StubResolver(("127.0.0.2",), ("127.0.0.1",))
    with RawServer(answers(OK, OK), address="127.0.0.2") as server:
        fetcher = make_fetcher(False, resolver=resolver, verdict=private_but("127.0.0.2"))
        url = f"http://rebind.example:{server.port}/"
        assert isinstance(fetcher.fetch(FetchRequest(url)), Capture)
        failure = fetcher.fetch(FetchRequest(url))
        assert isinstance(failure, FetchFailure)
        assert (failure.reason, len(server.requests)) == ("private_address", 1)


def test_of_mixed_addresses_only_the_public_ones_are_asked():
    resolver = StubResolver(("127.0.0.1", "127.0.0.2"))
    with RawServer(answers(OK), address="127.0.0.2") as server:
        fetcher = make_fetcher(False, resolver=resolver, verdict=private_but("127.0.0.2"))
        capture = fetcher.fetch(FetchRequest(f"http://mixed.example:{server.port}/"))
        assert isinstance(capture, Capture)
        assert capture.ip == "127.0.0.2"


def test_the_second_address_is_tried_when_the_first_refuses():
    resolver = StubResolver(("127.0.0.3", "127.0.0.2"))
    with RawServer(answers(OK), address="127.0.0.2") as server:
        capture = make_fetcher(resolver=resolver).fetch(FetchRequest(f"http://two.example:{server.port}/"))
        assert isinstance(capture, Capture)
        assert capture.ip == "127.0.0.2"


def test_a_server_that_answers_wrongly_is_not_passed_over_for_its_second_address():
    resolver = StubResolver(("127.0.0.2", "127.0.0.1"))
    with (
        RawServer(lambda peer: peer.send(b"I speak no TLS\r\n"), address="127.0.0.2") as wrong,
        RawServer(answers(OK), port=wrong.port) as silent,
    ):
        url = f"https://two.example:{wrong.port}/"
        failure = make_fetcher(resolver=resolver).fetch(FetchRequest(url))
        assert isinstance(failure, FetchFailure)
        assert (failure.ip, silent.connections) == ("127.0.0.2", 0)
        assert failure.reason in ("tls_error", "connection_reset")


@pytest.mark.parametrize("rules", [(), (":::{port}",), ("::127.0.0.2:{port}",)])
def test_a_public_address_without_a_contact_is_refused(rules):
    with RawServer(answers(OK), address="127.0.0.2") as server:
        rules = tuple(rule.format(port=server.port) for rule in rules)
        fetcher = make_fetcher(contact=None, rules=rules, verdict=private_but("127.0.0.2"))
        failure = fetcher.fetch(FetchRequest(f"http://127.0.0.2:{server.port}/"))
        assert isinstance(failure, FetchFailure)
        assert (failure.reason, server.connections) == ("no_contact", 0)


def test_ports_of_public_addresses_can_be_limited():
    with RawServer(answers(OK), address="127.0.0.2") as server:
        fetcher = make_fetcher(allowed_ports=frozenset({80, 443}), verdict=private_but("127.0.0.2"))
        failure = fetcher.fetch(FetchRequest(f"http://127.0.0.2:{server.port}/"))
        assert isinstance(failure, FetchFailure)
        assert (failure.reason, server.connections) == ("port_not_allowed", 0)
        pinned = make_fetcher(
            allowed_ports=frozenset({80, 443}),
            verdict=private_but("127.0.0.2"),
            rules=(f"::127.0.0.2:{server.port}",),
        )
        assert isinstance(pinned.fetch(FetchRequest(f"http://x.example:{server.port}/")), Capture)


@pytest.mark.parametrize("reason", ["dns_nxdomain", "dns_failure"])
def test_dns_trouble_has_one_word_and_its_detail(reason):
    failure = make_fetcher(resolver=StubResolver(DnsFailure(reason, "no\x1bthing"))).fetch(
        FetchRequest("http://x.example/")
    )
    assert isinstance(failure, FetchFailure)
    assert (failure.reason, failure.detail) == ("dns_failure", "x.example: no?thing")


def test_ipv6_is_spoken():
    with RawServer(answers(OK), address="::1") as server:
        capture = make_fetcher().fetch(FetchRequest(f"http://[::1]:{server.port}/"))
        assert isinstance(capture, Capture)
        assert capture.ip == "::1"
        assert b"\r\nHost: [::1]:%d\r\n" % server.port in server.requests[0]
