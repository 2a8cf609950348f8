"""What goes out and what comes back: the request as sent, the reply as received, connections in between."""

from __future__ import annotations

import gzip
import threading

import pytest

from schemas.fetch import Capture, FetchFailure, FetchRequest
from tests.fakes.fetching import make_fetcher
from tests.fakes.raw_server import Peer, RawServer, answers

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


def fetch(reply: bytes, request: FetchRequest | None = None, **options) -> Capture | FetchFailure:
    with RawServer(answers(reply)) as server:
        fetcher = make_fetcher(**options)
        outcome = fetcher.fetch((request or FetchRequest("/"))._replace(url=server.url()))
        fetcher.close()
        return outcome


def test_request_goes_out_exactly_as_the_capture_says():
    with RawServer(answers(OK)) as server:
        request = FetchRequest(
            server.url("/a|b;c?q={1}&r=[2]"),
            etag='W/"x"',
            last_modified="Mon, 30 Nov 2026 10:00:00 GMT",
            cookies=(("sid", "1"), ("lang", "en")),
        )
        capture = make_fetcher().fetch(request)
        assert isinstance(capture, Capture)
        head, *_ = server.requests
    lines = [capture.request_line, *(f"{name}: {value}" for name, value in capture.request_headers)]
    assert head.decode("latin-1") == "\r\n".join([*lines, "", ""])
    assert capture.request_line == "GET /a|b;c?q={1}&r=[2] HTTP/1.1"
    assert capture.request_headers == (
        ("Host", f"localhost:{server.port}"),
        ("User-Agent", "testbot/1.0 (+https://bot.example/)"),
        (
            "Accept",
            "text/html,application/xhtml+xml,application/xml;q=0.9,text/plain;q=0.8,*/*;q=0.5",
        ),
        ("Accept-Encoding", "gzip, deflate"),
        ("If-None-Match", 'W/"x"'),
        ("If-Modified-Since", "Mon, 30 Nov 2026 10:00:00 GMT"),
        ("Cookie", "sid=1; lang=en"),
        ("Connection", "keep-alive"),
    )


@pytest.mark.parametrize("poison", ["a\r\nX-Evil: 1", "a\nb", "a\x00b", "\u20ac", "a\x7f"])
def test_nothing_remembered_from_a_page_can_add_a_header(poison):
    with RawServer(answers(OK)) as server:
        request = FetchRequest(
            server.url(), etag=poison, last_modified=poison, cookies=(("a", poison), ("b", "good"))
        )
        assert isinstance(make_fetcher().fetch(request), Capture)
        head = server.requests[0].decode("latin-1")
    names = [line.partition(":")[0] for line in head.split("\r\n")[1:-2]]
    assert names == ["Host", "User-Agent", "Accept", "Accept-Encoding", "Cookie", "Connection"]
    assert "Cookie: b=good\r\n" in head


def test_reply_is_kept_in_order_and_case_with_its_bytes():
    reply = (
        b"HTTP/1.1 203 Non-\xc4uthoritative  Thing\r\nSET-cookie: a=1\r\n"
        b"X-Odd:  v\xe9 \r\nSet-Cookie: b=2\r\ncontent-LENGTH: 5\r\nEmpty:\r\n\r\n\x00\xff\r\n\x01"
    )
    capture = fetch(reply)
    assert isinstance(capture, Capture)
    assert (capture.protocol, capture.status) == ("HTTP/1.1", 203)
    assert capture.reason_phrase == "Non-Äuthoritative  Thing"
    assert capture.response_headers == (
        ("SET-cookie", "a=1"),
        ("X-Odd", "vé"),
        ("Set-Cookie", "b=2"),
        ("content-LENGTH", "5"),
        ("Empty", ""),
    )
    assert (capture.body, capture.truncated, capture.ip) == (b"\x00\xff\r\n\x01", None, "127.0.0.1")
    assert capture.started_at <= capture.finished_at


def test_chunks_are_removed_and_the_content_coding_is_kept():
    body = gzip.compress(b"page " * 100)
    chunks = b"".join(b"%x;ext=1\r\n%s\r\n" % (len(part), part) for part in (body[:7], body[7:]))
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n\r\n"
    capture = fetch(head + chunks + b"0\r\nTrailer: x\r\n\r\n")
    assert isinstance(capture, Capture)
    assert (capture.body, capture.truncated) == (body, None)
    assert ("Transfer-Encoding", "chunked") in capture.response_headers


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_come_back_unfollowed(status):
    reply = b"HTTP/1.1 %d Go\r\nLocation: http://127.0.0.1:1/next\r\nContent-Length: 4\r\n\r\nmove" % status
    capture = fetch(reply)
    assert isinstance(capture, Capture)
    assert (capture.status, capture.body) == (status, b"move")


def test_body_of_a_redirect_is_capped_like_any_other():
    def endless(peer: Peer) -> None:
        peer.read_request()
        peer.send(b"HTTP/1.1 302 Go\r\nLocation: /x\r\n\r\n")
        peer.flood(b"x" * 10_000, 1_000_000_000)

    with RawServer(endless) as server:
        capture = make_fetcher(max_body_bytes=50_000).fetch(FetchRequest(server.url()))
        assert isinstance(capture, Capture)
        assert (len(capture.body), capture.truncated) == (50_000, "length")


def test_cookies_of_a_reply_are_not_sent_again():
    reply = b"HTTP/1.1 200 OK\r\nSet-Cookie: sid=1\r\nContent-Length: 0\r\n\r\n"
    with RawServer(answers(reply, reply)) as server:
        fetcher = make_fetcher()
        for _ in range(2):
            assert isinstance(fetcher.fetch(FetchRequest(server.url())), Capture)
        assert len(server.requests) == 2
        assert not any(b"ookie" in head for head in server.requests)


def test_environment_gives_neither_proxy_nor_credentials(monkeypatch, tmp_path):
    (tmp_path / ".netrc").write_text("machine localhost login me password secret\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with RawServer(answers(OK)) as server:
        assert isinstance(make_fetcher().fetch(FetchRequest(server.url())), Capture)
        assert b"uthorization" not in server.requests[0]


def test_connection_is_kept_alive_until_the_host_is_closed():
    with RawServer(answers(*[OK] * 9)) as server:
        fetcher = make_fetcher()
        for expected in (1, 1, 1):
            assert isinstance(fetcher.fetch(FetchRequest(server.url())), Capture)
            assert server.connections == expected
        fetcher.close_host("other.example")
        fetcher.fetch(FetchRequest(server.url()))
        assert server.connections == 1
        fetcher.close_host("localhost")
        fetcher.fetch(FetchRequest(server.url()))
        assert server.connections == 2
        fetcher.close()


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nConnection: x, close\r\nContent-Length: 2\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nKeep-Alive: timeout=1, max=9\r\nContent-Length: 2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n",
    ],
)
def test_connection_is_not_kept_when_the_server_will_not_or_framing_is_faulty(head):
    reply = head + b"hi" + (b"\r\n0\r\n\r\n" if b"chunked" in head else b"")
    with RawServer(answers(reply, OK)) as server:
        fetcher = make_fetcher()
        for expected in (1, 2):
            assert isinstance(fetcher.fetch(FetchRequest(server.url())), Capture)
            assert server.connections == expected


@pytest.mark.parametrize(
    "first",
    [
        OK + b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
        b"HTTP/1.1 204 Nothing\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
        b"HTTP/1.1 304 Same\r\nContent-Length: 4\r\n\r\nevil",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\nevil",
    ],
)
def test_bytes_after_a_reply_never_answer_the_next_request(first):
    with RawServer(answers(first, first)) as server:
        fetcher = make_fetcher()
        bodies = [fetcher.fetch(FetchRequest(server.url())).body for _ in range(2)]
        assert b"evil" not in b"".join(bodies)
        assert server.connections == 2


def test_dropped_idle_connection_is_replaced_not_used():
    with RawServer(answers(OK)) as server:
        fetcher = make_fetcher()
        for expected in (1, 2, 3):
            assert isinstance(fetcher.fetch(FetchRequest(server.url())), Capture)
            assert server.connections == expected
            assert server.closed.acquire(timeout=5)


def test_a_request_is_never_sent_twice():
    def swallow(peer: Peer) -> None:
        peer.read_request()
        peer.send(OK)
        peer.read_request()

    with RawServer(swallow) as server:
        fetcher = make_fetcher()
        assert isinstance(fetcher.fetch(FetchRequest(server.url())), Capture)
        failure = fetcher.fetch(FetchRequest(server.url()))
        assert isinstance(failure, FetchFailure)
        assert (failure.reason, len(server.requests)) == ("disconnect", 2)


def test_many_threads_share_one_fetcher():
    def echo(peer: Peer) -> None:
        while head := peer.read_request():
            path = head.split()[1]
            peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(path), path))

    with RawServer(echo) as server:
        fetcher = make_fetcher(rules=(f"::127.0.0.1:{server.port}",))
        wrong: list[object] = []

        def visit(number: int) -> None:
            for page in range(8):
                outcome = fetcher.fetch(FetchRequest(f"http://host{number}.example/{number}/{page}"))
                if not isinstance(outcome, Capture) or outcome.body != f"/{number}/{page}".encode():
                    wrong.append(outcome)
            fetcher.close_host(f"host{number}.example")

        threads = [threading.Thread(target=visit, args=(number,)) for number in range(32)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []
        assert server.connections == 32


@pytest.mark.parametrize(
    "url",
    [
        "ftp://localhost/",
        "http:///path",
        "http://localhost:99999/",
        "http://[::1/",
        "//localhost/",
        "http://localhost/a b",
        "http://bücher.example/",
        "http://localhost/\r\nX-Evil:1",
        "http://local\thost/",
    ],
)
def test_what_is_no_normal_url_fails_by_name(url):
    failure = make_fetcher().fetch(FetchRequest(url))
    assert isinstance(failure, FetchFailure)
    assert (failure.reason, failure.url) == ("bad_url", url)
    assert failure.detail.isprintable()


@pytest.mark.parametrize(
    ("rest", "target"),
    [
        ("", "/"),
        ("?", "/?"),
        ("/a?", "/a?"),
        ("?q=/", "/?q=/"),
        ("//x", "//x"),
        ("/a#b?c", "/a"),
        ("/;a=%2F", "/;a=%2F"),
    ],
)
def test_request_target_is_the_urls_own(rest, target):
    with RawServer(answers(OK)) as server:
        capture = make_fetcher().fetch(FetchRequest(f"http://localhost:{server.port}{rest}"))
        assert isinstance(capture, Capture)
        assert capture.request_line == f"GET {target} HTTP/1.1"


def test_user_and_password_of_a_url_are_not_sent():
    with RawServer(answers(OK)) as server:
        url = server.url().replace("http://", "http://me:secret@")
        assert isinstance(make_fetcher().fetch(FetchRequest(url)), Capture)
        assert b"secret" not in server.requests[0]
        assert b"uthorization" not in server.requests[0]


def test_without_a_contact_the_user_agent_stands_alone():
    with RawServer(answers(OK)) as server:
        assert isinstance(make_fetcher(contact=None).fetch(FetchRequest(server.url())), Capture)
        assert b"\r\nUser-Agent: testbot/1.0\r\n" in server.requests[0]
