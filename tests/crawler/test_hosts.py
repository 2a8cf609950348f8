"""Registered domains, suffixes and the host columns of Common Crawl's index."""

from __future__ import annotations

import pytest

from crawler.hosts import (
    HostColumns,
    host_columns,
    is_address,
    is_dns_name,
    is_registry_suffix,
    registered_domain,
)


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("www.example.com", "example.com"),
        ("a.b.example.co.uk", "example.co.uk"),
        ("me.blogspot.com", "me.blogspot.com"),
        ("blogspot.com", "blogspot.com"),
        ("co.uk", "co.uk"),
        ("localhost", "localhost"),
        ("a.b.unknown-suffix", "b.unknown-suffix"),
        ("www.city.kawasaki.jp", "city.kawasaki.jp"),
        ("xn--80ak6aa92e.xn--p1ai", "xn--80ak6aa92e.xn--p1ai"),
        ("127.0.0.1", "127.0.0.1"),
        ("2001:db8::1", "2001:db8::1"),
    ],
)
def test_registered_domain(host, domain):
    assert registered_domain(host) == domain


def test_columns_of_a_host_below_a_private_suffix():
    assert host_columns("www.me.blogspot.com") == HostColumns(
        name="www.me.blogspot.com",
        tld="com",
        second_last_part="blogspot",
        third_last_part="me",
        fourth_last_part="www",
        fifth_last_part=None,
        registry_suffix="com",
        registered_domain="blogspot.com",
        private_suffix="blogspot.com",
        private_domain="me.blogspot.com",
        name_reversed="com.blogspot.me.www",
    )


def test_columns_stop_at_the_fifth_part():
    columns = host_columns("f.e.d.c.b.a.org")
    assert (columns.tld, columns.second_last_part, columns.fifth_last_part) == ("org", "a", "d")
    assert columns.name_reversed == "org.a.b.c.d.e.f"


def test_addresses_have_a_name_and_nothing_else():
    assert host_columns("192.0.2.1") == HostColumns("192.0.2.1")
    assert host_columns("2001:db8::1") == HostColumns("[2001:db8::1]")


@pytest.mark.parametrize("host", ["com", "co.uk", "xn--p1ai"])
def test_registry_suffixes(host):
    assert is_registry_suffix(host)


@pytest.mark.parametrize("host", ["localhost", "test", "blogspot.com", "example.com"])
def test_no_registry_suffixes(host):
    assert not is_registry_suffix(host)


def test_names_that_dns_can_be_asked():
    assert all(map(is_dns_name, ["a", "a-b.c_d.com", "xn--p1ai", "1.2.3", "a" * 63 + ".b"]))
    assert not any(
        map(is_dns_name, ["", ".", "a.", ".a", "a..b", "a b", "ä", "a" * 64, "a/b", "a.b," + "c", "x\n"])
    )


def test_addresses():
    assert all(map(is_address, ["1.2.3.4", "::1"]))
    assert not any(map(is_address, ["1.2.3", "a.1.2.3.4", "example.com", "1.2.3.4.example"]))
