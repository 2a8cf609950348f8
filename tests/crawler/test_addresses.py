"""The address gate: every spelling of a host that is not on the public internet is refused."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.addresses import AddressVerdict, classify, is_public
from crawler.hosts import is_address
from crawler.urls import NormalUrl, UrlRejection, host_of, normalise

SPELLINGS = [
    ("http://127.0.0.1/", "loopback"),
    ("http://127.1/", "loopback"),
    ("http://127.0.1/", "loopback"),
    ("http://2130706433/", "loopback"),
    ("http://0x7f000001/", "loopback"),
    ("http://0x7F.0x0.0x0.0x1/", "loopback"),
    ("http://0177.0.0.1/", "loopback"),
    ("http://017700000001/", "loopback"),
    ("http://0177.0x0.1/", "loopback"),
    ("http://127.0.0.1./", "loopback"),
    ("http://0x7f.1../", "loopback"),
    ("http://127.255.255.254:8080/", "loopback"),
    ("http://１２７.０.０.１/", "loopback"),
    ("http://127。0。0。1/", "loopback"),
    ("http://①②⑦.0.0.1/", "loopback"),
    ("http://%31%32%37.0.0.1/", "loopback"),
    ("http://127%2e0%2e0%2e1/", "loopback"),
    ("http://1\t27.0.0\n.1/", "loopback"),
    ("http://example.com@127.0.0.1/", "loopback"),
    ("http://example.com:80@127.0.0.1:80/", "loopback"),
    ("http://example.com%2F@127.0.0.1/", "loopback"),
    ("http://127.0.0.1\\@example.com/", "loopback"),
    ("http://127.0.0.1#@example.com/", "loopback"),
    ("http://127.0.0.1?@example.com/", "loopback"),
    ("https:127.0.0.1", "loopback"),
    ("http:\\\\127.0.0.1\\", "loopback"),
    ("///127.0.0.1/", "loopback"),
    ("http://[::1]/", "loopback"),
    ("http://[0:0:0:0:0:0:0:1]/", "loopback"),
    ("http://[::ffff:127.0.0.1]/", "loopback"),
    ("http://[::ffff:7f00:1]/", "loopback"),
    ("http://[64:ff9b::127.0.0.1]/", "loopback"),
    ("http://[2002:7f00:1::]/", "loopback"),
    ("http://[2001:0:808:808:0:0:80ff:fffe]/", "loopback"),
    ("http://[2606:4700::5efe:127.0.0.1]/", "loopback"),
    ("http://0/", "this_network"),
    ("http://0.0.0.0/", "this_network"),
    ("http://0x0/", "this_network"),
    ("http://00000000000/", "this_network"),
    ("http://[::]/", "unspecified"),
    ("http://[::127.0.0.1]/", "reserved"),
    ("http://10.0.0.1/", "private"),
    ("http://10.1/", "private"),
    ("http://167772161/", "private"),
    ("http://172.16.0.1/", "private"),
    ("http://172.31.255.255/", "private"),
    ("http://192.168.257/", "private"),
    ("http://0xc0a80001/", "private"),
    ("http://[::ffff:192.168.0.1]/", "private"),
    ("http://[64:ff9b::a00:1]/", "private"),
    ("http://[64:ff9b:1::a00:1]/", "reserved"),
    ("http://100.64.0.1/", "carrier_nat"),
    ("http://100.127.255.255/", "carrier_nat"),
    ("http://169.254.0.1/", "link_local"),
    ("http://[fe80::1]/", "link_local"),
    ("http://[fec0::1]/", "site_local"),
    ("http://[fd12:3456::1]/", "unique_local"),
    ("http://224.0.0.1/", "multicast"),
    ("http://[ff02::1]/", "multicast"),
    ("http://255.255.255.255/", "broadcast"),
    ("http://4294967295/", "broadcast"),
    ("http://240.0.0.1/", "reserved"),
    ("http://192.0.0.8/", "reserved"),
    ("http://192.0.2.1/", "documentation"),
    ("http://[2001:db8::1]/", "documentation"),
    ("http://[3fff::1]/", "documentation"),
    ("http://198.18.0.1/", "benchmarking"),
    ("http://[2001:2::1]/", "benchmarking"),
    ("http://[4000::1]/", "reserved"),
    ("http://169.254.169.254/latest/meta-data/", "cloud_metadata"),
    ("http://2852039166/", "cloud_metadata"),
    ("http://0xA9FEA9FE/", "cloud_metadata"),
    ("http://0251.0376.0251.0376/", "cloud_metadata"),
    ("http://169.254.43518/", "cloud_metadata"),
    ("http://[::ffff:a9fe:a9fe]/", "cloud_metadata"),
    ("http://[fd00:ec2::254]/", "cloud_metadata"),
    ("http://[fd20:ce::254]/", "cloud_metadata"),
    ("http://100.100.100.200/", "cloud_metadata"),
    ("http://168.63.129.16/", "cloud_metadata"),
    ("http://169.254.170.2/", "cloud_metadata"),
]

REFUSED_BY_THE_PARSER = [
    "http://127.0.0.1.1/",
    "http://0x7f.0.0.0.1/",
    "http://127.0.0.256/",
    "http://127.0.0.08/",
    "http://4294967296/",
    "http://0x100000000/",
    "http://[::1%25eth0]/",
    "http://[::1/",
    "http://::1/",
    "http://[127.0.0.1]/",
    "http://[::ffff:127.0.0.1.]/",
    "http://127.0.0.1%00.example.com/",
    "http://foo.127.0.0.1/",
]


def test_the_table_is_large_enough():
    assert len(SPELLINGS) >= 40


@pytest.mark.parametrize(("url", "kind"), SPELLINGS)
def test_spellings_of_addresses_that_are_not_public(url, kind):
    normal = normalise(url, "http://base.example/")
    assert isinstance(normal, NormalUrl)
    assert is_address(host_of(normal.url))
    assert is_public(host_of(normal.url)) == AddressVerdict(False, "private_address", kind)


@pytest.mark.parametrize("url", REFUSED_BY_THE_PARSER)
def test_spellings_that_are_no_host_at_all(url):
    assert isinstance(normalise(url), UrlRejection)


@pytest.mark.parametrize(
    "ip",
    [
        "1.1.1.1",
        "8.8.8.8",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.167.255.255",
        "223.255.255.255",
        "2606:4700:4700::1111",
        "2001:4860:4860::8888",
        "::ffff:8.8.8.8",
        "64:ff9b::8.8.8.8",
        "2002:808:808::1",
        "2001:0:808:808:0:0:f7f7:f7f7",
    ],
)
def test_public_addresses(ip):
    assert is_public(ip) == AddressVerdict(True)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "localhost",
        "127.1",
        "0177.0.0.1",
        "1.2.3.4 ",
        "[::1]",
        "1.2.3.4:80",
        "::1%",
        "256.1.1.1",
        "١.١.١.١",
    ],
)
def test_what_is_no_address_is_not_public(text):
    assert is_public(text) == AddressVerdict(False, "private_address", "not_an_address")


def test_a_zone_changes_nothing():
    assert classify("fe80::1%eth0") == "link_local"
    assert classify("::ffff:10.0.0.1%3") == "private"


@given(st.ip_addresses())
def test_nothing_is_public_that_python_knows_to_be_private(ip):
    if classify(str(ip)) is None:
        assert not (ip.is_private or ip.is_loopback or ip.is_link_local or ip.is_multicast)
        assert ip.version == 6 or not ip.is_reserved


@given(st.ip_addresses(v=4))
def test_a_carried_address_is_as_public_as_itself(v4):
    number = int(v4)
    carriers = [
        IPv6Address(0xFFFF << 32 | number),
        IPv6Address((0x64FF9B << 96) | number),
        IPv6Address((0x2002 << 112) | number << 80),
        IPv6Address((0x20010000 << 96) | int(IPv4Address("8.8.8.8")) << 64 | (number ^ 0xFFFFFFFF)),
    ]
    assert {classify(str(carrier)) for carrier in carriers} == {classify(str(v4))}


@given(st.ip_addresses(v=4))
def test_every_way_to_write_an_ipv4_address_meets_the_same_verdict(v4):
    a, b, c, d = v4.packed
    for host in (
        str(int(v4)),
        hex(int(v4)),
        f"0{int(v4):o}",
        f"{a}.{int(v4) & 0xFFFFFF}",
        f"{a:#x}.{b:#o}.{c << 8 | d}".replace("0o", "0"),
    ):
        normal = normalise(f"http://{host}./")
        assert isinstance(normal, NormalUrl)
        assert ip_address(host_of(normal.url)) == v4
