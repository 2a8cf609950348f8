"""Host names to addresses: what is asked, what is remembered and for how long."""

from __future__ import annotations

import pytest

from connectors.dns import (
    Addresses,
    DnsFailure,
    DnsPolicy,
    Nameserver,
    Resolver,
    parse_nameservers,
)
from tests.fakes.clock import FakeClock
from tests.fakes.dns_server import DnsServer

QUICK = DnsPolicy(query_timeout=0.2, lookup_timeout=0.5)


def resolver(*servers: DnsServer, clock: FakeClock | None = None, policy: DnsPolicy = QUICK) -> Resolver:
    return Resolver(clock or FakeClock(), [server.nameserver for server in servers], policy)


def test_addresses_come_ipv4_first_and_ipv6_is_asked_only_when_needed():
    records = {
        ("both.example", "A"): (300, "192.0.2.1", "192.0.2.2"),
        ("both.example", "AAAA"): (300, "2001:db8::1"),
        ("six.example", "AAAA"): (300, "2001:db8::6"),
    }
    with DnsServer(records) as server:
        names = resolver(server)
        assert set(names.resolve("Both.Example").addresses) == {"192.0.2.1", "192.0.2.2"}
        assert names.resolve("six.example.") == Addresses(("2001:db8::6",))
        assert ("both.example", "AAAA") not in server.asked


def test_aliases_are_followed_and_their_ttl_counts():
    records = {
        ("www.example", "CNAME"): (100, "origin.example"),
        ("origin.example", "A"): (5000, "192.0.2.9"),
    }
    clock = FakeClock()
    with DnsServer(records) as server:
        names = resolver(server, clock=clock)
        assert names.resolve("www.example") == Addresses(("192.0.2.9",))
        clock.advance(101)
        names.resolve("www.example")
        assert server.asked["www.example", "A"] == 2


@pytest.mark.parametrize(("ttl", "kept"), [(500, 500), (0, 60), (10**6, 86_400)])
def test_answers_are_remembered_for_their_ttl_within_bounds(ttl, kept):
    clock = FakeClock()
    with DnsServer({("a.example", "A"): (ttl, "192.0.2.1")}) as server:
        names = resolver(server, clock=clock)
        for wait, asked in ((0, 1), (kept - 1, 1), (2, 2)):
            clock.advance(wait)
            assert names.resolve("a.example") == Addresses(("192.0.2.1",))
            assert server.asked["a.example", "A"] == asked


@pytest.mark.parametrize(("negative_ttl", "kept"), [(900, 900), (1, 300), (10**6, 3600)])
def test_refusals_are_remembered_longer_than_trouble(negative_ttl, kept):
    clock = FakeClock()
    with DnsServer({("mail.example", "MX"): (60, "10 mx.example.")}, negative_ttl) as server:
        names = resolver(server, clock=clock)
        for name in ("nothere.example", "mail.example"):
            for wait, asked in ((0, 1), (kept - 1, 1), (2, 2)):
                clock.advance(wait)
                failure = names.resolve(name)
                assert isinstance(failure, DnsFailure)
                assert failure.reason == "dns_nxdomain"
                assert server.asked[name, "A"] == asked


def test_trouble_is_asked_about_again_after_waits_that_double():
    clock = FakeClock()
    with DnsServer({("ill.example", "ANY"): (0, "SERVFAIL")}) as server:
        policy = QUICK._replace(first_trouble=5, max_trouble=20, lookup_timeout=0.05)
        names = resolver(server, clock=clock, policy=policy)
        for wait in (5, 10, 20, 20):
            failure = names.resolve("ill.example")
            assert isinstance(failure, DnsFailure)
            assert failure.reason == "dns_failure"
            asked = server.asked.total()
            clock.advance(wait - 0.1)
            names.resolve("ill.example")
            assert server.asked.total() == asked
            clock.advance(0.2)


def test_trouble_is_forgotten_once_the_name_answers():
    clock = FakeClock()
    with DnsServer({("ill.example", "ANY"): (0, "SERVFAIL")}) as server:
        names = resolver(server, clock=clock, policy=QUICK._replace(lookup_timeout=0.05))
        names.resolve("ill.example")
        server.records = {("ill.example", "A"): (60, "192.0.2.1")}
        clock.advance(6)
        assert names.resolve("ill.example") == Addresses(("192.0.2.1",))


def test_another_name_server_answers_when_one_is_silent():
    with DnsServer({}) as silent, DnsServer({("a.example", "A"): (60, "192.0.2.1")}) as server:
        silent.silent = True
        for _ in range(6):
            names = resolver(silent, server, policy=DnsPolicy(query_timeout=0.1, lookup_timeout=2))
            assert names.resolve("a.example") == Addresses(("192.0.2.1",))
        assert silent.asked.total() > 0


def test_name_servers_take_turns():
    records = {(f"n{number}.example", "A"): (60, "192.0.2.1") for number in range(40)}
    with DnsServer(records) as one, DnsServer(records) as two:
        names = resolver(one, two)
        for number in range(40):
            assert isinstance(names.resolve(f"n{number}.example"), Addresses)
        assert one.asked.total() + two.asked.total() == 40
        assert min(one.asked.total(), two.asked.total()) > 5


def test_silence_everywhere_ends_in_time():
    with DnsServer({}) as server:
        server.silent = True
        failure = resolver(server).resolve("a.example", timeout_seconds=0.2)
        assert isinstance(failure, DnsFailure)
        assert failure.reason == "dns_failure"
        assert failure.detail.isprintable()


@pytest.mark.parametrize(
    ("host", "addresses"),
    [
        ("192.0.2.7", ("192.0.2.7",)),
        ("2001:DB8::1", ("2001:db8::1",)),
        ("[::1]", ("::1",)),
        ("localhost", ("127.0.0.1", "::1")),
        ("LOCALHOST.", ("127.0.0.1", "::1")),
        ("a.localhost", ("127.0.0.1", "::1")),
    ],
)
def test_addresses_and_localhost_need_no_query(host, addresses):
    with DnsServer({}) as server:
        assert resolver(server).resolve(host) == Addresses(addresses)
        assert server.asked.total() == 0


@pytest.mark.parametrize("host", ["a" * 64 + ".example", "a..example", ".", "a." * 130 + "example"])
def test_what_no_name_can_be_does_not_exist(host):
    with DnsServer({}) as server:
        failure = resolver(server).resolve(host)
        assert isinstance(failure, DnsFailure)
        assert failure.reason == "dns_nxdomain"


@pytest.mark.parametrize("host", ["127.1", "0x7f.0.0.1", "0177.0.0.1", "2130706433", "fe80::1%lo"])
def test_odd_spellings_of_addresses_are_names_like_any_other(host):
    with DnsServer({}) as server:
        assert isinstance(resolver(server).resolve(host), DnsFailure)


def test_a_storm_of_names_does_not_fill_the_memory():
    with DnsServer({}) as server:
        names = resolver(server, policy=QUICK._replace(cache_names=10))
        for number in range(30):
            names.resolve(f"n{number}.example")
        names.resolve("n29.example")
        names.resolve("n0.example")
        assert (server.asked["n29.example", "A"], server.asked["n0.example", "A"]) == (1, 2)


def test_only_a_few_of_many_addresses_are_kept():
    values = [f"192.0.2.{number}" for number in range(1, 25)]
    with DnsServer({("many.example", "A"): (60, *values)}) as server:
        assert len(resolver(server).resolve("many.example").addresses) == 8


def test_name_servers_are_read_from_flags():
    assert parse_nameservers(["192.0.2.1,192.0.2.2:5353", " [2001:db8::1]:53 , 2001:db8::2"]) == (
        Nameserver("192.0.2.1", 53),
        Nameserver("192.0.2.2", 5353),
        Nameserver("2001:db8::1", 53),
        Nameserver("2001:db8::2", 53),
    )
    assert parse_nameservers([]) == ()


@pytest.mark.parametrize("text", ["dns.example", "192.0.2.1:0", "192.0.2.1:x", "[::1]:99999", "300.1.1.1"])
def test_a_name_server_that_is_none_is_named(text):
    with pytest.raises(ValueError, match=r"^nameservers: '"):
        parse_nameservers([text])
