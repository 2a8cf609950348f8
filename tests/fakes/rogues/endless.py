"""Replies that take for ever, or bring more than anyone asked for."""

from __future__ import annotations

from tests.fakes.rogues.model import Catalogue, Turn, chunk, chunked, html, raw
from tests.fakes.rogues.replies import FETCHED, HTML, OK


def add_time_and_size(web: Catalogue) -> None:
    kind = "time and size"
    web.add(
        kind,
        "nobody-listens",
        "a port that nobody listens at",
        "failed_retry",
        "connection_refused",
        reach="closed",
    )
    web.add(
        kind, "black-hole", "connections that are never accepted", "failed_retry", "timeout", reach="hole"
    )

    @web.act(kind, "never-answers", "silence", "failed_retry", "timeout", quick=True)
    def _(turn: Turn) -> None:
        turn.peer.hold()

    @web.act(kind, "silent-in-body", "silence within the body", *FETCHED, truncated="time")
    def _(turn: Turn) -> None:
        turn.send(raw(OK, HTML, b"Content-Length: 99999", body=html("silent-in-body")))
        turn.peer.hold()

    @web.act(kind, "body-drip", "a body of one byte every 50 ms", *FETCHED, truncated="time", quick=True)
    def _(turn: Turn) -> None:
        turn.send(raw(OK, HTML, body=html("body-drip")))
        turn.peer.drip(b"x" * 10_000, 0.05)

    @web.act(kind, "chunk-drip", "chunks of one byte without end, slowly", *FETCHED, truncated="time")
    def _(turn: Turn) -> None:
        turn.send(chunked(chunk(html("chunk-drip")), end=b""))
        turn.peer.drip(b"1\r\nx\r\n" * 2000, 0.02)

    @web.act(
        kind,
        "endless-body",
        "a body without end, as fast as it goes",
        *FETCHED,
        truncated="length",
        quick=True,
    )
    def _(turn: Turn) -> None:
        turn.send(raw(OK, HTML, body=html("endless-body")))
        turn.peer.flood(b"<!-- more -->" * 10_000, 1 << 34)

    @web.act(kind, "endless-chunks", "chunks without end", *FETCHED, truncated="length")
    def _(turn: Turn) -> None:
        turn.send(chunked(chunk(html("endless-chunks")), end=b""))
        turn.peer.flood(chunk(b"<!-- more -->" * 1000) * 10, 1 << 34)

    @web.act(kind, "endless-error", "an error page without end", "gone", "http_404", truncated="length")
    def _(turn: Turn) -> None:
        turn.send(raw(b"HTTP/1.1 404 Gone", HTML))
        turn.peer.flood(b"not here " * 10_000, 1 << 34)

    @web.act(kind, "huge-length", "a Content-Length of 10^17", *FETCHED, truncated="length")
    def _(turn: Turn) -> None:
        turn.send(raw(OK, HTML, b"Content-Length: 100000000000000000", body=html("huge-length")))
        turn.peer.flood(b"<!-- more -->" * 10_000, 1 << 34)
