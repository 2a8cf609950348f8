"""What the records of a capture say: true headers, addresses, types, revisits."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any

import brotli
import pytest

from connectors.warc_read import WarcRecord, http_payload, iter_records
from connectors.warc_verify import verify_warc
from schemas.fetch import Capture, Original
from tests.fakes.captures import (
    HTML,
    capture,
    html,
    open_segment,
    original_of,
)

ORIGINAL = Original("https://old.example/", "2025-01-01T00:00:00.000001Z", "urn:uuid:" + "0" * 8, "?")


def stored(tmp_path: Path, one: Capture, **arguments: Any) -> WarcRecord:
    """Write one capture and return its response or revisit record."""
    values = {"subset": "warc", "metadata": {}, "revisit": None, "record_seed": "planned", **arguments}
    segment = open_segment(tmp_path / "segment")
    segment.write(one, **values)
    (closed,) = segment.close()
    assert verify_warc(closed.local_path, closed.cdxj_lines, closed.digest) == []
    return next(r for r in iter_records(closed.local_path) if r.kind in ("response", "revisit"))


def test_chunked_and_wrong_lengths_become_true(tmp_path: Path) -> None:
    headers = (("transfer-encoding", "chunked"), ("Content-Length", "7"), ("X", "1"), ("content-length", "9"))
    payload = http_payload(stored(tmp_path, capture(body=b"four", response_headers=headers)))
    assert payload.headers == (
        ("X-Crawler-transfer-encoding", "chunked"),
        ("X-Crawler-Content-Length", "7"),
        ("X", "1"),
        ("X-Crawler-content-length", "9"),
        ("Content-Length", "4"),
    )


@pytest.mark.parametrize(
    "headers", [(), (("Content-Length", "4"),), (("content-length", " 4 "), ("Content-Encoding", "br"))]
)
def test_headers_that_are_true_stay(tmp_path: Path, headers: tuple[tuple[str, str], ...]) -> None:
    payload = http_payload(stored(tmp_path, capture(body=b"four", response_headers=headers)))
    assert payload.headers == tuple((name, value.strip()) for name, value in headers)


def test_a_truncated_body_says_why_and_has_its_own_length(tmp_path: Path) -> None:
    record = stored(tmp_path, capture(body=b"four", truncated="time", response_headers=html({}, 999)))
    assert record.get("WARC-Truncated") == "time"
    assert ("X-Crawler-Content-Length", "999") in http_payload(record).headers
    assert ("Content-Length", "4") in http_payload(record).headers


def test_header_bytes_stay_as_received(tmp_path: Path) -> None:
    headers = (("X-Latin", "caf\xe9"), ("X-Utf8", "é".encode().decode("latin-1")), ("X-Wide", "€"))
    record = stored(tmp_path, capture(response_headers=headers, reason_phrase="\xc4rger"))
    assert record.block.startswith(b"HTTP/1.1 200 \xc4rger\r\nX-Latin: caf\xe9\r\nX-Utf8: \xc3\xa9\r\n")
    assert "X-Wide: €".encode() in record.block


@pytest.mark.parametrize(
    ("ip", "written"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:0DB8:0::0:1", "2001:db8::1"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("fe80::1%eth0", "fe80::1"),
        ("not an address", None),
        (None, None),
    ],
)
def test_addresses_are_written_as_rfc_5952_says(tmp_path: Path, ip: str | None, written: str | None) -> None:
    assert stored(tmp_path, capture(ip=ip)).get("WARC-IP-Address") == written


def test_a_later_protocol_is_named_and_the_status_line_stays_readable(tmp_path: Path) -> None:
    record = stored(tmp_path, capture(protocol="h2", reason_phrase=""))
    assert record.get("WARC-Protocol") == "h2"
    assert record.block.startswith(b"HTTP/1.1 200 \r\n")


@pytest.mark.parametrize("coding", ["gzip", "br"])
def test_the_payload_type_is_that_of_the_decoded_body(tmp_path: Path, coding: str) -> None:
    body = {"gzip": gzip.compress, "br": brotli.compress}[coding](HTML * 500)
    headers = (("Content-Type", "image/png"), ("Content-Encoding", coding))
    record = stored(tmp_path, capture(body=body, response_headers=headers))
    assert record.get("WARC-Identified-Payload-Type") == "text/html"
    assert http_payload(record).body == body


def test_a_compressed_body_with_a_long_header_of_its_own_is_looked_into(tmp_path: Path) -> None:
    file = io.BytesIO()
    with gzip.GzipFile("n" * 5000, "wb", fileobj=file) as zipped:
        zipped.write(HTML)
    headers = (("Content-Encoding", "gzip"),)
    record = stored(tmp_path, capture(body=file.getvalue(), response_headers=headers))
    assert record.get("WARC-Identified-Payload-Type") == "text/html"


def test_an_empty_body_has_no_payload_type(tmp_path: Path) -> None:
    assert stored(tmp_path, capture(body=b"")).get("WARC-Identified-Payload-Type") is None


def test_an_identical_payload_becomes_a_revisit(tmp_path: Path) -> None:
    first = open_segment(tmp_path / "old").write(capture("https://old.example/"), "warc", {}, None, "")
    original = original_of("https://old.example/", first)
    record = stored(tmp_path, capture(), revisit=original)
    assert record.kind == "revisit"
    assert record.get("WARC-Profile") == "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
    assert record.get("WARC-Refers-To") == f"<{first.record_id}>"
    assert record.get("WARC-Refers-To-Target-URI") == "https://old.example/"
    assert record.get("WARC-Refers-To-Date") == first.date
    assert record.get("WARC-Payload-Digest") == f"sha1:{first.payload_digest}"
    assert record.get("WARC-Truncated") == "length"
    assert http_payload(record).body == b""


def test_a_304_becomes_a_revisit_without_payload_digest(tmp_path: Path) -> None:
    original = ORIGINAL._replace(record_id="urn:uuid:8a0c3e6f-086c-504a-a49f-4ccc157c5cad")
    headers = (("ETag", '"x"'), ("Content-Length", "5000"), ("Transfer-Encoding", "chunked"))
    not_modified = capture(status=304, reason_phrase="Not Modified", body=b"", response_headers=headers)
    record = stored(tmp_path, not_modified, revisit=original, subset="crawldiagnostics")
    assert record.get("WARC-Profile") == "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
    assert record.get("WARC-Payload-Digest") is None
    assert record.get("WARC-Truncated") is None
    assert record.block == (
        b'HTTP/1.1 304 Not Modified\r\nETag: "x"\r\nContent-Length: 5000\r\n'
        b"X-Crawler-Transfer-Encoding: chunked\r\n\r\n"
    )


@pytest.mark.parametrize(
    ("body", "truncated"), [(b"", None), (HTML, "length"), (HTML, "disconnect"), (b"something else", None)]
)
def test_empty_truncated_and_other_bodies_are_stored_whole(
    tmp_path: Path, body: bytes, truncated: str | None
) -> None:
    first = open_segment(tmp_path / "old").write(capture(body=body or HTML), "warc", {}, None, "")
    digest = "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ" if not body else first.payload_digest
    original = ORIGINAL._replace(payload_digest=digest if body != b"something else" else "X" * 32)
    record = stored(tmp_path, capture(body=body, truncated=truncated), revisit=original)
    assert record.kind == "response"
    assert http_payload(record).body == body
