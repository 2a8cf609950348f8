"""What a stored page costs: writing, verifying and reading, beside bare warcio in the same run."""

from __future__ import annotations

import gzip
import io
import random
import tempfile
import time
from pathlib import Path
from typing import Any

from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from connectors.warc import WarcInfo, WarcNaming, WarcSegment
from connectors.warc_read import read_payload
from connectors.warc_verify import verify_warc
from crawler.sniff import sniff
from crawler.surt import surt_key
from schemas.fetch import Capture

METADATA = {"fetchTimeMs": "250", "via": "https://site.example/", "charset-detected": "UTF-8"}
HEADERS = (
    ("Date", "Sun, 30 Nov 2025 10:53:20 GMT"),
    ("Content-Type", "text/html; charset=utf-8"),
    ("Content-Encoding", "gzip"),
    ("Transfer-Encoding", "chunked"),
    ("Vary", "Accept-Encoding"),
    ("Set-Cookie", "session=0123456789abcdef; Path=/; HttpOnly"),
)
REQUEST = (("Host", "site.example"), ("User-Agent", "roundcrawl/0.1.0"), ("Accept-Encoding", "gzip"))


def pages(count: int, html_bytes: int) -> list[Capture]:
    """Return captures of pages of about ``html_bytes`` each, sent with gzip as servers send them."""
    chance = random.Random(7)
    words = [
        "".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(2, 11))) for _ in range(4000)
    ]
    captures = []
    for number in range(count):
        paragraphs = []
        size = 0
        while size < html_bytes:
            paragraphs.append(f'<p class="c{size % 7}">{" ".join(chance.choices(words, k=60))}</p>\n')
            size += len(paragraphs[-1])
        body = gzip.compress(
            f"<!doctype html><title>{number}</title>{''.join(paragraphs)}".encode(), 6, mtime=0
        )
        captures.append(
            Capture(
                url=f"https://site.example/section/{number}.html",
                started_at=1_764_500_000.0 + number,
                finished_at=1_764_500_000.5 + number,
                ip="192.0.2.7",
                request_line=f"GET /section/{number}.html HTTP/1.1",
                request_headers=REQUEST,
                protocol="HTTP/1.1",
                status=200,
                reason_phrase="OK",
                response_headers=HEADERS,
                body=body,
            )
        )
    return captures


def write_bare(captures: list[Capture], out: Any) -> None:
    """Write request, response and metadata of each capture with warcio alone."""
    writer = WARCWriter(out, gzip=True, warc_version="1.1")
    for one in captures:
        response = writer.create_warc_record(
            one.url,
            "response",
            payload=io.BytesIO(one.body),
            length=len(one.body),
            http_headers=StatusAndHeaders("200 OK", list(one.response_headers), protocol="HTTP/1.1"),
        )
        request = writer.create_warc_record(
            one.url,
            "request",
            http_headers=StatusAndHeaders(one.request_line, list(one.request_headers), is_http_request=True),
        )
        writer.write_request_response_pair(request, response)
        text = "".join(f"{name}: {value}\r\n" for name, value in METADATA.items()).encode()
        writer.write_record(
            writer.create_warc_record(one.url, "metadata", payload=io.BytesIO(text), length=len(text))
        )


def open_segment(folder: Path) -> WarcSegment:
    """Return a segment as a round opens it."""
    return WarcSegment(
        folder,
        WarcNaming("bench", "20251130105320", 0, "0000"),
        WarcInfo("roundcrawl", "me", "RFC 9309", "roundcrawl", "bench"),
        crawl="bench",
        salt="salt",
        round_number=1,
        attempt="1",
        surt_key=surt_key,
        identify=sniff,
    )


def run(count: int = 300, html_bytes: int = 150_000, turns: int = 3) -> dict[str, float]:
    """Return CPU milliseconds a page (best of the turns) and our writer's ratio to bare warcio."""
    captures = pages(count, html_bytes)
    best: dict[str, float] = {}

    def measure(name: str, started: float) -> None:
        spent = (time.process_time() - started) * 1000 / count
        best[name] = min(best.get(name, spent), spent)

    for _ in range(turns):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            started = time.process_time()
            with (folder / "bare.warc.gz").open("wb") as out:
                write_bare(captures, out)
            measure("bare_warcio_ms", started)
            started = time.process_time()
            segment = open_segment(folder)
            places = [segment.write(one, "warc", METADATA, None, "planned") for one in captures]
            (closed,) = segment.close()
            measure("write_ms", started)
            started = time.process_time()
            faults = verify_warc(closed.local_path, closed.cdxj_lines, closed.digest)
            measure("verify_ms", started)
            if faults:
                raise AssertionError(faults[0])
            data = closed.local_path.read_bytes()
            started = time.process_time()
            for place in places:
                read_payload(data[place.offset : place.offset + place.length])
            measure("read_ms", started)
            best["kilobytes_per_page"] = closed.bytes / count / 1000
    best["write_ratio"] = best["write_ms"] / best["bare_warcio_ms"]
    return {name: round(value, 3) for name, value in best.items()}


if __name__ == "__main__":
    print(run())
