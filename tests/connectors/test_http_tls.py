"""TLS: one context for all connections, verified by default, names checked against the URL's host."""

from __future__ import annotations

import ssl

import pytest

from connectors.transport import unverified_context, verified_context
from schemas.fetch import Capture, FetchFailure, FetchRequest
from tests.fakes.certificates import CertificateAuthority
from tests.fakes.fetching import make_fetcher
from tests.fakes.raw_server import Peer, RawServer, answers

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
CLOSING = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi"


@pytest.fixture(scope="module")
def authority(tmp_path_factory) -> CertificateAuthority:
    return CertificateAuthority(tmp_path_factory.mktemp("tls"))


def fetch(server: RawServer, authority: CertificateAuthority, host: str = "localhost", **request):
    fetcher = make_fetcher(ca_file=authority.ca_file, rules=(f"::127.0.0.1:{server.port}",))
    outcome = fetcher.fetch(FetchRequest(f"https://{host}/", **request))
    fetcher.close()
    return outcome


def test_second_connection_does_not_load_the_bundle_again(authority, monkeypatch):
    loads: list[str] = []
    load, create = ssl.SSLContext.load_verify_locations, ssl.create_default_context

    def counting_load(self, *arguments, **options):
        loads.append("bundle")
        return load(self, *arguments, **options)

    def counting_create(*arguments, **options):
        loads.append("context")
        return create(*arguments, **options)

    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", counting_load)
    monkeypatch.setattr(ssl, "create_default_context", counting_create)
    verified_context.cache_clear()
    with RawServer(answers(CLOSING), tls=authority.server_context("localhost")) as server:
        fetcher = make_fetcher(ca_file=authority.ca_file)
        for expected in (1, 2, 3):
            outcome = fetcher.fetch(FetchRequest(server.url(scheme="https")))
            assert isinstance(outcome, Capture), outcome
            assert server.connections == expected
        other = make_fetcher(ca_file=authority.ca_file)
        assert isinstance(other.fetch(FetchRequest(server.url(scheme="https"))), Capture)
    assert loads == ["context", "bundle"]


def test_unverified_hosts_share_a_context_that_loads_nothing(monkeypatch):
    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", lambda *_: pytest.fail("loaded"))
    unverified_context.cache_clear()
    assert unverified_context() is unverified_context()
    assert unverified_context().verify_mode == ssl.CERT_NONE


def test_connection_is_kept_alive_over_tls(authority):
    with RawServer(answers(OK, OK, OK), tls=authority.server_context("localhost")) as server:
        fetcher = make_fetcher(ca_file=authority.ca_file)
        for _ in range(3):
            assert isinstance(fetcher.fetch(FetchRequest(server.url(scheme="https"))), Capture)
        assert server.connections == 1


@pytest.mark.parametrize("host", ["localhost", "shop.example", "Shop.Example.", "xn--bcher-kva.example"])
def test_certificate_is_checked_against_the_urls_host_not_the_address(authority, host):
    names = ("localhost", "shop.example", "xn--bcher-kva.example")
    with RawServer(answers(OK), tls=authority.server_context(*names)) as server:
        outcome = fetch(server, authority, host)
        assert isinstance(outcome, Capture), outcome
        assert outcome.ip == "127.0.0.1"


def test_server_is_told_the_urls_host(authority):
    asked: list[str | None] = []
    context = authority.server_context("shop.example")
    context.sni_callback = lambda _socket, name, _context: asked.append(name)
    with RawServer(answers(OK), tls=context) as server:
        assert isinstance(fetch(server, authority, "shop.example."), Capture)
    assert asked == ["shop.example"]


def test_address_in_a_url_needs_a_certificate_for_it(authority):
    for names, kind in ((("127.0.0.1",), Capture), (("localhost",), FetchFailure)):
        with RawServer(answers(OK), tls=authority.server_context(*names)) as server:
            assert isinstance(fetch(server, authority, "127.0.0.1"), kind)


@pytest.mark.parametrize("trouble", ["name", "expired", "unknown authority"])
def test_bad_certificates_are_outcomes_unless_the_policy_says_otherwise(authority, trouble, tmp_path):
    signer = CertificateAuthority(tmp_path) if trouble == "unknown authority" else authority
    name = "other.example" if trouble == "name" else "localhost"
    context = signer.server_context(name, expired=trouble == "expired")
    with RawServer(answers(OK), tls=context) as server:
        outcome = fetch(server, authority)
        assert isinstance(outcome, FetchFailure)
        assert (outcome.reason, outcome.ip) == ("tls_error", "127.0.0.1")
        assert "certificate verify failed" in outcome.detail
        assert server.requests == []
        assert isinstance(fetch(server, authority, insecure_tls=True), Capture)


def test_an_unverified_connection_never_serves_a_verified_fetch(authority, tmp_path):
    stranger = CertificateAuthority(tmp_path)
    with RawServer(answers(OK, OK), tls=stranger.server_context("localhost")) as server:
        fetcher = make_fetcher(ca_file=authority.ca_file)
        url = server.url(scheme="https")
        assert isinstance(fetcher.fetch(FetchRequest(url, insecure_tls=True)), Capture)
        outcome = fetcher.fetch(FetchRequest(url))
        assert isinstance(outcome, FetchFailure)
        assert outcome.reason == "tls_error"


def test_a_server_that_speaks_no_tls_is_a_tls_error(authority):
    def chatty(peer: Peer) -> None:
        peer.send(b"HTTP/1.1 400 Speak TLS\r\nContent-Length: 0\r\n\r\n")
        peer.hold()

    with RawServer(chatty) as server:
        outcome = fetch(server, authority)
        assert isinstance(outcome, FetchFailure)
        assert outcome.reason == "tls_error"


def test_a_handshake_that_never_ends_is_a_connect_timeout(authority):
    with RawServer(lambda peer: peer.hold()) as server:
        fetcher = make_fetcher(ca_file=authority.ca_file, connect_timeout_seconds=0.3)
        outcome = fetcher.fetch(FetchRequest(server.url(scheme="https")))
        assert isinstance(outcome, FetchFailure)
        assert (outcome.reason, outcome.finished_at - outcome.started_at < 2) == ("connect_timeout", True)


def test_http_to_a_tls_port_is_no_http(authority):
    with RawServer(answers(OK), tls=authority.server_context("localhost")) as server:
        outcome = make_fetcher().fetch(FetchRequest(server.url()))
        assert isinstance(outcome, FetchFailure)
        assert outcome.reason in ("bad_response", "disconnect", "connection_reset")


def test_body_without_its_end_over_tls_is_truncated(authority):
    reply = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhi"
    with RawServer(answers(reply), tls=authority.server_context("localhost")) as server:
        outcome = fetch(server, authority)
        assert isinstance(outcome, Capture)
        assert (outcome.body, outcome.truncated) == (b"hi", "disconnect")


def test_cut_gives_no_encrypted_bytes_as_body(authority):
    fetcher = make_fetcher(ca_file=authority.ca_file)

    def cutting(peer: Peer) -> None:
        peer.read_request()
        peer.send(b"HTTP/1.1 200 OK\r\n\r\n" + b"a" * 100_000)
        fetcher.cut()
        peer.hold()

    with RawServer(cutting, tls=authority.server_context("localhost")) as server:
        outcome = fetcher.fetch(FetchRequest(server.url(scheme="https")))
    if isinstance(outcome, Capture):
        assert set(outcome.body) <= {ord("a")}
    else:
        assert outcome.reason == "stopped"


def test_host_name_that_tls_cannot_carry_fails_by_name(authority):
    with RawServer(answers(OK), tls=authority.server_context("localhost")) as server:
        outcome = fetch(server, authority, "a" * 64 + ".example")
        assert isinstance(outcome, FetchFailure)
        assert outcome.reason == "tls_error"
