"""Replies that break HTTP: status lines, header fields, framing."""

from __future__ import annotations

from tests.fakes.rogues.model import Catalogue, Turn, chunk, chunked, html, raw, reply

OK = b"HTTP/1.1 200 OK"
HTML = b"Content-Type: text/html"
BAD = ("failed_retry", "bad_response")
TOO_LARGE = ("failed_retry", "header_too_large")
FETCHED = ("fetched",)


def add_status_lines(web: Catalogue) -> None:
    kind = "status line"
    web.sends(kind, "status-words", "words instead of HTTP", b"hello crawler\r\n", *BAD, quick=True)
    web.sends(kind, "status-http09", "a page without any head (HTTP/0.9)", b"<html><p>old</p></html>\n", *BAD)
    web.sends(kind, "status-http2", "an HTTP/2 status line", b"HTTP/2 200\r\n\r\n", *BAD)
    web.sends(kind, "status-ssh", "the greeting of an SSH server", b"SSH-2.0-OpenSSH_9.2\r\n", *BAD)
    web.sends(kind, "status-binary", "random bytes", bytes(range(256)) * 40 + b"\n", *BAD)
    web.sends(kind, "status-short", "a status of two digits", raw(b"HTTP/1.1 20 OK", body=b"x"), *BAD)
    web.sends(kind, "status-long", "a status of four digits", raw(b"HTTP/1.1 2000 OK", body=b"x"), *BAD)
    web.sends(kind, "status-glued", "no space after the status", raw(b"HTTP/1.1 200OK", body=b"x"), *BAD)
    web.sends(
        kind,
        "status-999",
        "a status that does not exist",
        reply(b"x", status=b"999 No"),
        "failed_retry",
        "http_999",
    )
    web.sends(kind, "status-phrase", "100 KB of reason phrase", b"HTTP/1.1 200 " + b"a" * 100_000, *TOO_LARGE)
    web.sends(
        kind,
        "status-escape",
        "a reason phrase that moves the cursor",
        reply(html("status-escape"), status=b"200 \x1b[2J\x1b[31mOK\x07"),
        *FETCHED,
    )
    web.sends(
        kind,
        "status-switch",
        "101 Switching Protocols, unasked",
        raw(b"HTTP/1.1 101 Switching Protocols", b"Upgrade: h2c"),
        *BAD,
    )
    web.sends(
        kind,
        "interim-storm",
        "a thousand 100 Continue",
        raw(b"HTTP/1.1 100 Continue") * 1000,
        *BAD,
        quick=True,
    )
    web.sends(
        kind,
        "interim-hints",
        "103 Early Hints with 5,000 links",
        raw(b"HTTP/1.1 103 Hints", *[b"Link: </x>"] * 5000) + reply(html("interim-hints")),
        *TOO_LARGE,
    )
    web.sends(
        kind,
        "unasked-304",
        "304 Not Modified, unasked",
        raw(b"HTTP/1.1 304 Same"),
        "failed_retry",
        "http_304",
    )

    @web.act(kind, "interim-endless", "100 Continue again and again, slowly", "failed_retry", "timeout")
    def _(turn: Turn) -> None:
        for _ in range(8):
            turn.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        turn.peer.drip(b"HTTP/1.1 100 " + b"Go on " * 1000, 0.05)


def add_header_fields(web: Catalogue) -> None:
    kind = "header fields"
    web.sends(
        kind, "header-huge", "one field of 1 MB", raw(OK, b"X: " + b"a" * 1_000_000, body=b"x"), *TOO_LARGE
    )
    web.sends(
        kind, "header-many", "10,000 fields", raw(OK, *[b"A: b"] * 10_000, body=b"x"), *TOO_LARGE, quick=True
    )
    web.sends(
        kind, "header-colons", "10,000 lines without a colon", raw(OK, *[b"words"] * 10_000), *TOO_LARGE
    )
    web.sends(
        kind, "header-bare-cr", "a lone CR within a field", raw(OK, HTML, b"X: 1\rSet-Cookie: a=1"), *BAD
    )
    web.sends(kind, "header-nul", "a NUL in a field's name", raw(OK, b"X\0Y: 1", body=b"x"), *BAD)
    web.sends(kind, "header-space", "white space before the first field", raw(OK, b" X: 1", body=b"x"), *BAD)
    web.sends(
        kind,
        "header-controls",
        "escape sequences, bells and NULs in values",
        reply(html("header-controls"), b"X-Esc: \x1b]0;owned\x07\x00\x08\x7f", b'ETag: "\x1b[2J"'),
        *FETCHED,
        quick=True,
    )
    web.sends(
        kind,
        "header-forges-warc",
        "fields and a body that look like WARC records",
        reply(
            html("forge") + b"\r\n\r\nWARC/1.1\r\nWARC-Type: response\r\nContent-Length: 0\r\n\r\n\r\n\r\n",
            b"WARC-Type: warcinfo",
            b"WARC-Target-URI: http://bank.example/",
            b"X-Crawler-Content-Length: 1",
        ),
        *FETCHED,
        quick=True,
    )
    web.sends(
        kind,
        "header-fold",
        "values folded over lines",
        reply(html("header-fold"), b"X-Long: a\r\n b\r\n\tc"),
        *FETCHED,
    )
    web.sends(
        kind,
        "header-bytes",
        "bytes that are neither ASCII nor UTF-8",
        reply(html("header-bytes"), b"X-\xff: \xfe\xfd", b'ETag: "\xe9"'),
        *FETCHED,
    )
    web.sends(
        kind,
        "header-dates",
        "dates and delays that are none",
        reply(html("header-dates"), b"Last-Modified: 99 Foo 99999 99:99:99", b"Retry-After: -1e999"),
        *FETCHED,
    )
    web.sends(
        kind,
        "retry-after-ages",
        "503 until the year 9999",
        reply(b"busy", b"Retry-After: Fri, 31 Dec 9999 23:59:59 GMT", status=b"503 Busy"),
        "failed_retry",
        "http_503",
    )

    @web.act(kind, "header-endless", "header fields without end", *TOO_LARGE)
    def _(turn: Turn) -> None:
        turn.send(OK + b"\r\n")
        turn.peer.flood(b"X-More: and more\r\n" * 1000, 1 << 30)

    @web.act(kind, "header-drip", "a header of one byte every 50 ms", "failed_retry", "timeout", quick=True)
    def _(turn: Turn) -> None:
        turn.send(OK + b"\r\nX-Slow: ")
        turn.peer.drip(b"z" * 10_000, 0.05)


def add_framing(web: Catalogue) -> None:
    kind = "framing"
    body = html("framing")
    web.sends(
        kind,
        "length-differs",
        "two Content-Length fields that differ",
        raw(OK, HTML, b"Content-Length: 5", b"Content-Length: 50", body=body),
        *BAD,
    )
    web.sends(
        kind, "length-list", "Content-Length: 5, 50", raw(OK, HTML, b"Content-Length: 5, 50", body=body), *BAD
    )
    web.sends(
        kind,
        "length-negative",
        "Content-Length: -1",
        raw(OK, HTML, b"Content-Length: -1", body=html("length-negative")),
        *FETCHED,
    )
    web.sends(
        kind,
        "length-word",
        "Content-Length: many",
        raw(OK, HTML, b"Content-Length: many", body=html("length-word")),
        *FETCHED,
    )
    web.sends(
        kind,
        "length-too-long",
        "more bytes announced than sent",
        raw(OK, HTML, b"Content-Length: 99999", body=html("length-too-long")),
        *FETCHED,
        truncated="disconnect",
    )
    web.sends(
        kind,
        "length-too-short",
        "bytes after the announced end, a whole second reply",
        reply(html("length-too-short")) + reply(html("smuggled")),
        *FETCHED,
        quick=True,
    )
    web.sends(
        kind,
        "length-and-chunks",
        "a Content-Length beside chunks",
        raw(
            OK,
            HTML,
            b"Content-Length: 5",
            b"Transfer-Encoding: chunked",
            body=chunk(html("length-and-chunks")) + b"0\r\n\r\n",
        ),
        *FETCHED,
    )
    web.sends(kind, "chunk-word", "a chunk size that is a word", chunked(b"xyz\r\nabc\r\n"), *BAD, quick=True)
    web.sends(kind, "chunk-negative", "a negative chunk size", chunked(b"-5\r\nhello\r\n"), *BAD)
    web.sends(kind, "chunk-overflow", "a chunk size beyond 64 bits", chunked(b"f" * 20 + b"\r\nhello"), *BAD)
    web.sends(kind, "chunk-longer", "a chunk longer than its size", chunked(b"2\r\nhello\r\n"), *BAD)
    web.sends(
        kind,
        "chunk-extensions",
        "chunk extensions of 3 KB for each byte",
        chunked(*[b"1;" + b"e" * 3000 + b"\r\nx\r\n"] * 3000),
        *BAD,
    )
    web.sends(
        kind,
        "chunk-trailers",
        "trailer fields without end",
        chunked(chunk(html("chunk-trailers")), end=b"0\r\n" + b"T: x\r\n" * 2_000_000),
        *TOO_LARGE,
    )
    web.sends(
        kind,
        "chunk-cut",
        "chunks that break off",
        chunked(chunk(html("chunk-cut")), b"fff\r\nhalf", end=b""),
        *FETCHED,
        truncated="disconnect",
    )
    web.sends(
        kind,
        "transfer-gzip",
        "a transfer coding nobody asked for",
        raw(OK, HTML, b"Transfer-Encoding: gzip, chunked", body=b"0\r\n\r\n"),
        *BAD,
    )
    web.sends(kind, "closes-at-once", "nothing, then the end", b"", "failed_retry", "disconnect", quick=True)
    web.sends(kind, "closes-in-head", "half a head", OK + b"\r\nX: 1\r\n", "failed_retry", "disconnect")
    web.sends(
        kind,
        "closes-before-body",
        "a head, and no byte of its body",
        raw(OK, HTML, b"Content-Length: 100"),
        "failed_retry",
        "disconnect",
    )

    @web.act(kind, "resets", "a reset instead of an answer", "failed_retry", "connection_reset")
    def _(turn: Turn) -> None:
        turn.peer.reset()

    @web.act(kind, "resets-in-body", "a reset within the body", *FETCHED, truncated="disconnect")
    def _(turn: Turn) -> None:
        turn.send(raw(OK, HTML, b"Content-Length: 99999", body=html("resets-in-body")))
        turn.peer.drip(b"  ", 0.2)
        turn.peer.reset()
