"""TLS, names and addresses: what goes wrong before a byte of HTTP."""

from __future__ import annotations

from tests.fakes.rogues.model import Catalogue, good_page

NO_NAME = ("failed_retry", "dns_failure")
PRIVATE = ("excluded", "private_address")


def add_tls(web: Catalogue) -> None:
    kind = "TLS"
    bad = ("failed_retry", "tls_error")
    for name, what in (
        ("tls-unknown", "a certificate that nobody has signed"),
        ("tls-expired", "a certificate of long ago"),
        ("tls-name", "another host's certificate"),
    ):
        web.add(kind, name, what, *bad, act=good_page, reach="tls", quick=name == "tls-expired")
    web.add(kind, "tls-plain", "HTTP where TLS is due", *bad, reach="tls-plain")
    web.add(kind, "tls-garbage", "random bytes in the handshake", *bad, reach="tls-garbage")
    web.add(kind, "tls-silent", "a handshake that never ends", "failed_retry", "timeout", reach="tls-silent")
    lost = ("deferred", "robots_unreachable")
    web.add(kind, "tls-resets", "a reset in the handshake", *lost, reach="tls-resets")
    web.add(
        kind,
        "tls-allowed",
        "an unsigned certificate, let in by the domain's policy",
        "fetched",
        act=good_page,
        reach="tls",
    )


def add_names(web: Catalogue) -> None:
    kind = "names"

    def named(
        name: str, what: str, outcome: tuple[str, str], *records: tuple[str, str, tuple], **more
    ) -> None:
        web.add(kind, name, what, *outcome, reach="dns", records=records, **more)

    def own(name: str, type_: str, *answer: object) -> tuple[str, str, tuple]:
        return f"{name}.example", type_, tuple(answer)

    named("dns-nxdomain", "a name that does not exist", NO_NAME, quick=True)
    named("dns-empty", "a name without an address", NO_NAME, own("dns-empty", "MX", 60, "10 mx.example."))
    named("dns-servfail", "a name server that fails", NO_NAME, own("dns-servfail", "ANY", 0, "SERVFAIL"))
    named("dns-refused", "a name server that refuses", NO_NAME, own("dns-refused", "ANY", 0, "REFUSED"))
    named("dns-silent", "a name server that is silent", NO_NAME, own("dns-silent", "ANY", 0, "SILENT"))
    named("dns-garbage", "an answer of random bytes", NO_NAME, own("dns-garbage", "ANY", 0, "GARBAGE"))
    named("dns-circle", "an alias of itself", NO_NAME, own("dns-circle", "CNAME", 60, "dns-circle.example"))
    named("dns-private", "a name for 10.0.0.1", PRIVATE, own("dns-private", "A", 60, "10.0.0.1"))
    named(
        "dns-loopback", "a name for 127.0.0.1", PRIVATE, own("dns-loopback", "A", 60, "127.0.0.1"), quick=True
    )
    named(
        "dns-metadata",
        "a name for the cloud's metadata",
        PRIVATE,
        own("dns-metadata", "A", 0, "169.254.169.254"),
    )
    named("dns-six", "a name for ::1", PRIVATE, own("dns-six", "AAAA", 60, "::1"))
    named(
        "dns-mapped",
        "a name for ::ffff:127.0.0.1",
        PRIVATE,
        own("dns-mapped", "AAAA", 60, "::ffff:127.0.0.1"),
    )
    named(
        "dns-many",
        "a name for 40 private addresses",
        PRIVATE,
        own("dns-many", "A", 60, *(f"10.0.{n}.1" for n in range(20)), *(f"192.168.{n}.1" for n in range(20))),
    )
    named(
        "dns-alias",
        "an alias of a private name",
        PRIVATE,
        own("dns-alias", "CNAME", 60, "inside.example"),
        ("inside.example", "A", (60, "192.168.0.1")),
    )


def add_addresses(web: Catalogue) -> None:
    for name, url, what in (
        ("address-decimal", "http://2130706433/", "127.0.0.1 as one number"),
        ("address-octal", "http://0251.0376.0251.0376/latest/", "169.254.169.254 in octal"),
        ("address-hex", "http://0xa000001/", "10.0.0.1 in hex"),
        ("address-short", "http://192.168.1/", "192.168.0.1 in three parts"),
        ("address-zero", "http://0/", "0.0.0.0"),
        ("address-wide", "http://１７２.１６.０.１/", "172.16.0.1 in full-width digits"),
        ("address-dot", "http://100.64.0.1./", "a carrier's address with a trailing dot"),
        ("address-user", "http://example.org@198.18.0.1/", "a test network's address behind a user name"),
        ("address-six", "http://[::1]/", "::1"),
        ("address-local", "http://[fe80::1]/", "a link-local address"),
        ("address-unique", "http://[fd00:ec2::254]/", "a metadata address in IPv6"),
        ("address-mapped", "http://[::ffff:169.254.169.254]/", "an IPv4 address in an IPv6 one"),
        ("address-nat64", "http://[64:ff9b::a00:1]/", "a private address behind NAT64"),
        ("address-name", "http://localhost/", "localhost"),
        ("address-below", "http://any.localhost/", "a name below localhost"),
    ):
        web.add("addresses", name, what, *PRIVATE, url=url, reach="dns", quick=name == "address-decimal")
