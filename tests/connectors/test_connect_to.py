"""Rules in curl's --connect-to syntax."""

from __future__ import annotations

import pytest

from connectors.connect_to import ConnectRule, ConnectTarget, ConnectTo, parse_rule


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("example.org:443:127.0.0.1:8443", ConnectRule("example.org", 443, "127.0.0.1", 8443)),
        ("EXAMPLE.org:443:Staging.Example:443", ConnectRule("example.org", 443, "staging.example", 443)),
        ("::127.0.0.1:8080", ConnectRule("", None, "127.0.0.1", 8080)),
        (":80::8080", ConnectRule("", 80, "", 8080)),
        (":::", ConnectRule("", None, "", None)),
        ("[2001:DB8::1]:80:[::1]:8080", ConnectRule("2001:db8::1", 80, "::1", 8080)),
        ("a:::", ConnectRule("a", None, "", None)),
    ],
)
def test_rules_are_read(text, rule):
    assert parse_rule(text) == rule


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "connect_to must be HOST:PORT:ADDRESS:PORT, got ''"),
        ("127.0.0.1:8080", "connect_to must be HOST:PORT:ADDRESS:PORT, got '127.0.0.1:8080'"),
        ("a:1:b:2:3", "connect_to must be HOST:PORT:ADDRESS:PORT, got 'a:1:b:2:3'"),
        ("::::1:80", "connect_to must be HOST:PORT:ADDRESS:PORT, got '::::1:80'"),
        ("a:x:b:1", "connect_to 'a:x:b:1': 'x' is no port (1 to 65535)"),
        ("a:1:b:0", "connect_to 'a:1:b:0': '0' is no port (1 to 65535)"),
        ("a:1:b:65536", "connect_to 'a:1:b:65536': '65536' is no port (1 to 65535)"),
        ("a:1:b:-1", "connect_to 'a:1:b:-1': '-1' is no port (1 to 65535)"),
        ("a:1:[zz]:1", "connect_to 'a:1:[zz]:1': '[zz]' is no IPv6 address in brackets"),
        ("a:1:[::1:1", "connect_to must be HOST:PORT:ADDRESS:PORT, got 'a:1:[::1:1'"),
        ("a b:1:c:1", "connect_to 'a b:1:c:1': 'a b' is no host name or address"),
        ("http://a:1:c:1", "connect_to must be HOST:PORT:ADDRESS:PORT, got 'http://a:1:c:1'"),
    ],
)
def test_faulty_rules_are_named(text, message):
    with pytest.raises(ValueError) as caught:
        parse_rule(text)
    assert str(caught.value) == message


def test_first_rule_that_fits_applies():
    rules = ConnectTo.parse(["a.example:443:192.0.2.1:8443", "a.example::192.0.2.2:", "::192.0.2.3:1"])
    assert rules.lookup("A.example", 443) == ConnectTarget("192.0.2.1", 8443)
    assert rules.lookup("a.example", 80) == ConnectTarget("192.0.2.2", 80)
    assert rules.lookup("other.example", 80) == ConnectTarget("192.0.2.3", 1)


def test_no_rule_that_fits_is_none():
    assert ConnectTo().lookup("a.example", 80) is None
    assert ConnectTo.parse(["a.example:443:192.0.2.1:1"]).lookup("a.example", 80) is None
    assert ConnectTo.parse(["a.example:443:192.0.2.1:1"]).lookup("b.example", 443) is None


def test_a_rule_without_an_address_names_none():
    assert ConnectTo.parse([":80::8080"]).lookup("a.example", 80) == ConnectTarget("a.example", 8080, False)


def test_hosts_are_compared_without_brackets():
    assert ConnectTo.parse(["[::1]::[::2]:1"]).lookup("[::1]", 80) == ConnectTarget("::2", 1)


@pytest.mark.parametrize(
    ("rule", "pinned"),
    [("::127.0.0.1:8080", True), (":80:127.0.0.1:8080", False), ("a::127.0.0.1:1", False), (":::1", False)],
)
def test_a_rule_for_everything_pins_every_host(rule, pinned):
    assert ConnectTo.parse([rule]).pins_every_host is pinned
