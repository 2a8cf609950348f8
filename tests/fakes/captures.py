"""Captures of every kind that a WARC writer meets, and a segment to write them into."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import brotli
import surt

from connectors.warc import ClosedWarc, WarcInfo, WarcNaming, WarcSegment
from crawler.sniff import sniff
from schemas.fetch import Capture, Original, WarcLocation

STARTED_AT = 1_764_500_000.123456
HTML = b"<!doctype html><title>Hello</title><p>" + b"Some words of text. " * 40
INFO = WarcInfo(
    software="roundcrawl/0.1.0",
    operator="Test <mailto:test@example.org>",
    robots="RFC 9309",
    user_agent="roundcrawl/0.1.0 (+mailto:test@example.org)",
    is_part_of="toy",
)
NAMING = WarcNaming("toy", "20251130105320", 7, "0003")


def capture(url: str = "https://a.example/", body: bytes = HTML, **changes: Any) -> Capture:
    """Return a complete capture of an HTML page; ``changes`` replace its fields."""
    headers = (("Content-Type", "text/html; charset=utf-8"), ("Content-Length", str(len(body))))
    return Capture(
        url=url,
        started_at=STARTED_AT,
        finished_at=STARTED_AT + 0.25,
        ip="192.0.2.7",
        request_line=f"GET /{url.split('/', 3)[3]} HTTP/1.1",
        request_headers=(("Host", url.split("/")[2]), ("User-Agent", "roundcrawl/0.1.0")),
        protocol="HTTP/1.1",
        status=200,
        reason_phrase="OK",
        response_headers=headers,
        body=body,
    )._replace(**changes)


def open_segment(folder: Path, **changes: Any) -> WarcSegment:
    """Return a segment in a new folder, with SURT keys as the indexers of others make them."""
    folder.mkdir(parents=True, exist_ok=True)
    arguments: dict[str, Any] = {
        "naming": NAMING,
        "info": INFO,
        "crawl": "toy",
        "salt": "salt",
        "round_number": 1,
        "attempt": "1",
        "surt_key": surt.surt,
        "identify": sniff,
    }
    arguments.update(changes)
    naming, info = arguments.pop("naming"), arguments.pop("info")
    return WarcSegment(folder, naming, info, **arguments)


def original_of(url: str, location: WarcLocation) -> Original:
    """Return what a later revisit of a stored response refers to."""
    return Original(url, location.date, location.record_id, location.payload_digest or "")


def html(headers: dict[str, str], length: int | None = None) -> tuple[tuple[str, str], ...]:
    """Return response headers of a page, with a Content-Length if ``length`` is given."""
    stated = {} if length is None else {"Content-Length": str(length)}
    return tuple({"Content-Type": "text/html", **stated, **headers}.items())


def every_kind() -> list[tuple[Capture, str]]:
    """Return captures of all kinds but revisits, each with its subset."""
    zipped, brotlied = gzip.compress(HTML, mtime=0), brotli.compress(HTML)
    pages = [
        capture(),
        capture("https://a.example/gzip", zipped, response_headers=html({"Content-Encoding": "gzip"})),
        capture("https://a.example/br", brotlied, response_headers=html({"Content-Encoding": "br"})),
        capture("https://a.example/chunked", response_headers=html({"Transfer-Encoding": "chunked"})),
        capture("https://a.example/bad-length", response_headers=html({}, 7)),
        capture("https://a.example/empty", b""),
        capture("https://a.example/no-type", response_headers=()),
        capture("https://a.example/empty-type", response_headers=(("Content-Type", ""),)),
        capture("https://a.example/odd-type", response_headers=(("Content-Type", " text/HTML charset=x"),)),
        capture("https://a.example/cut", HTML[:100], truncated="length", response_headers=html({}, 999)),
        capture("https://a.example/late", HTML[:90], truncated="time", response_headers=html({})),
        capture("https://a.example/ip6", ip="2001:0DB8:0::0:1"),
        capture("http://b.example:8080/caf%C3%A9?a=1&b=%20", b"plain text", response_headers=html({})),
        capture("https://a.example/latin", response_headers=html({"X-Note": "caf\xe9", "X-Utf8": "Ã©"})),
        capture("https://a.example/inject", response_headers=html({"X-Bad": "a\r\nWARC-Type: x\r\n\r\n\0"})),
        capture("https://a.example/h2", protocol="h2", reason_phrase=""),
        capture("https://a.example/png", b"\x89PNG\r\n\x1a\n" + bytes(64)),
    ]
    odd = capture(
        "https://a.example/down", b"", status=503, reason_phrase="Later\r\nX: y", response_headers=()
    )
    others = [
        odd,
        capture("https://a.example/moved", b"", status=301, response_headers=html({"Location": "/"}, 0)),
        capture("https://a.example/gone", b"<p>gone", status=404, reason_phrase="Not Found"),
        capture(
            "https://a.example/down", b"", status=503, reason_phrase="Later\r\nX: y", response_headers=()
        ),
        capture("https://a.example/stale", b"", status=304, response_headers=html({}, 5000)),
    ]
    robots = capture(
        "https://a.example/robots.txt",
        b"User-agent: *\nDisallow:\n",
        response_headers=(("Content-Type", "text/plain"),),
    )
    return [
        *((page, "warc") for page in pages),
        *((other, "crawldiagnostics") for other in others),
        (robots, "robotstxt"),
    ]


def write_every_kind(folder: Path, **changes: Any) -> list[ClosedWarc]:
    """Write all kinds of captures, and revisits of both profiles, and return the finished files."""
    segment = open_segment(folder, **changes)
    metadata = {"fetchTimeMs": "250", "via": "https://a.example/"}
    first: WarcLocation | None = None
    for number, (one, subset) in enumerate(every_kind()):
        location = segment.write(one, subset, metadata, None, f"{number}")
        first = first or location
    assert first is not None
    original = original_of("https://a.example/", first)
    segment.write(capture("https://copy.example/"), "warc", metadata, original, "copy")
    stale = capture(status=304, body=b"", reason_phrase="Not Modified", response_headers=(("ETag", '"x"'),))
    segment.write(stale, "crawldiagnostics", {"fetchTimeMs": "3"}, original, "again")
    return segment.close()
