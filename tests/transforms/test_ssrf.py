"""No spelling, redirect or answer of a name server leads to an inside address: asserted where sockets connect."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from crawler.redirects import target_of
from crawler.urls import NormalUrl, normalise
from crawler.visit import Reply, Visit
from schemas.fetch import FetchFailure, FetchRequest
from schemas.flags import CrawlFlags
from tests.fakes.dns_server import DnsServer
from tests.fakes.raw_server import RawServer, answers
from transforms.fetcher import open_fetcher

PUBLIC = "93.184.215.14"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret"

SPELLINGS = """
http://127.0.0.1/ http://127.0.0.1./ http://127.1/ http://127.0.1/ http://2130706433/ http://017700000001/
http://0x7f000001/ http://0x7f.1/ http://0x7F.0x0.0x0.0x1/ http://0177.0.0.1/ http://127.000.000.001/
http://127.255.255.254/ http://0/ http://0.0.0.0/ http://0x0/ http://00.0/ http://%31%32%37.0.0.1/
http://１２７.０.０.１/ http://①②⑦.⓪.⓪.①/ http://127。0。0。1/ http://localhost/ http://LOCALHOST./
http://a.localhost/ http://ｌｏｃａｌｈｏｓｔ/ http://[::1]/ http://[::]/ http://[0:0:0:0:0:0:0:1]/
http://[::ffff:127.0.0.1]/ http://[::ffff:7f00:1]/ http://[::127.0.0.1]/ http://[64:ff9b::127.0.0.1]/
http://[2002:7f00:1::]/ http://[fe80::1]/ http://[fec0::1]/ http://[fc00::1]/ http://[ff02::1]/
http://10.0.0.1/ http://10.1/ http://012.0.0.1/ http://0xa000001/ http://172.16.0.1/ http://172.31.255.255/
http://192.168.0.1/ http://192.168.257/ http://3232235521/ http://100.64.0.1/ http://198.18.0.1/
http://224.0.0.1/ http://255.255.255.255/ http://169.254.169.254/latest/meta-data/ http://2852039166/
http://0xA9FEA9FE/ http://0251.0376.0251.0376/ http://169.254.43518/ http://[::ffff:169.254.169.254]/
http://[fd00:ec2::254]/ http://[fd20:ce::254]/ http://169.254.170.2/v2/credentials http://100.100.100.200/
http://168.63.129.16/ http://192.0.0.192/ http://example.org@127.0.0.1/ http://example.org:80@10.0.0.1/
http://127.0.0.1#@example.org/ http://127.0.0.1\\@example.org/ http:127.0.0.1/ http:\\\\127.0.0.1/
http:///127.0.0.1/ //127.0.0.1/ \\\\127.0.0.1/ https://127.0.0.1/ http://127.0.0.1:8080/ http://[::1]:8443/
""".split()  # noqa: SIM905  one spelling after the other is easier to read than a list of quotes

NAMES = {
    "loopback.example": {"A": (0, "127.0.0.1")},
    "private.example": {"A": (0, "10.0.0.1")},
    "metadata.example": {"A": (0, "169.254.169.254")},
    "six.example": {"AAAA": (0, "::1")},
    "mapped.example": {"AAAA": (0, "::ffff:10.0.0.1")},
    "nat64.example": {"AAAA": (0, "64:ff9b::a9fe:a9fe")},
    "alias.example": {"CNAME": (0, "loopback.example")},
    "all.example": {"A": (0, "127.0.0.1", "10.0.0.1"), "AAAA": (0, "::1")},
    "*.wild.example": {"A": (0, "192.168.1.1")},
    "rebound.example": {"A": [(0, PUBLIC), (0, "127.0.0.1")]},
    "mixed.example": {"A": (0, "127.0.0.1", PUBLIC, "169.254.169.254")},
}


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record where stream sockets are about to connect, and let none of them leave."""
    seen: list[str] = []

    def connect(sock: socket.socket, address: tuple) -> None:
        if sock.type & socket.SOCK_STREAM:
            seen.append(address[0])
        raise ConnectionRefusedError("no connection leaves this test")

    monkeypatch.setattr(socket.socket, "connect", connect)
    return seen


@pytest.fixture
def names() -> Iterator[DnsServer]:
    records = {(name, kind): answer for name, kinds in NAMES.items() for kind, answer in kinds.items()}
    with DnsServer(records) as server:
        yield server


def fetcher_asking(names: DnsServer):
    server = f"127.0.0.1:{names.nameserver.port}"
    return open_fetcher(CrawlFlags(contact="https://bot.example/", nameservers=(server,)))


def test_the_table_is_long_enough() -> None:
    assert len(set(SPELLINGS)) + len(NAMES) >= 40


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_no_spelling_of_an_inside_address_is_connected_to(spelling, connected, names) -> None:
    fetcher = fetcher_asking(names)
    base = "http://public.example/page"
    moved = Reply(0.0, 1.0, status=302, location=spelling)
    result = normalise(spelling, base)
    urls = {spelling, target_of(Visit("planned", base, "public.example"), moved) or spelling}
    urls |= {result.url} if isinstance(result, NormalUrl) else set()
    for url in urls:
        failure = fetcher.fetch(FetchRequest(url))
        assert isinstance(failure, FetchFailure), url
        assert failure.reason in ("private_address", "bad_url", "dns_failure"), (url, failure)
    assert connected == []


@pytest.mark.parametrize(
    "name", [*(name for name in NAMES if name[0] not in "*rm"), "metadata.example", "x.wild.example"]
)
def test_no_name_leads_to_an_inside_address(name, connected, names) -> None:
    failure = fetcher_asking(names).fetch(FetchRequest(f"http://{name}/"))
    assert isinstance(failure, FetchFailure)
    assert failure.reason == "private_address"
    assert connected == []


def test_a_name_that_is_bound_again_goes_nowhere_new(connected, names) -> None:
    fetcher, request = fetcher_asking(names), FetchRequest("http://rebound.example/")
    for _ in range(3):
        fetcher.fetch(request)
    assert set(connected) == {PUBLIC}, "one look-up serves the check and the socket, for a minute at least"
    assert names.asked["rebound.example", "A"] == 1
    later = fetcher_asking(names).fetch(request)
    assert isinstance(later, FetchFailure)
    assert later.reason == "private_address"
    assert set(connected) == {PUBLIC}


def test_of_mixed_answers_only_the_public_address_is_tried(connected, names) -> None:
    fetcher_asking(names).fetch(FetchRequest("http://mixed.example/"))
    assert set(connected) == {PUBLIC}


def test_odd_ports_of_public_addresses_are_not_connected_to(connected, names) -> None:
    for port in (21, 22, 25, 3306, 6379, 9200, 11211):
        failure = fetcher_asking(names).fetch(FetchRequest(f"http://{PUBLIC}:{port}/"))
        assert isinstance(failure, FetchFailure)
        assert failure.reason == "port_not_allowed"
    assert connected == []


def test_a_listener_inside_stays_silent(names) -> None:
    with RawServer(answers(OK)) as silent:
        fetcher = fetcher_asking(names)
        hosts = (
            "127.0.0.1",
            "2130706433",
            "0x7f.1",
            "localhost",
            "[::ffff:127.0.0.1]",
            "0",
            "loopback.example",
        )
        for host in hosts:
            result = normalise(f"http://{host}:{silent.port}/")
            assert isinstance(result, NormalUrl)
            failure = fetcher.fetch(FetchRequest(result.url))
            assert isinstance(failure, FetchFailure)
            assert failure.reason == "private_address"
        assert silent.connections == 0
