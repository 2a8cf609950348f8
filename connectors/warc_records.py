"""The records of one capture, as bytes: WARC/1.1 fields, HTTP blocks, digests and ids."""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import re
import uuid
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from urllib.parse import quote

from connectors.encoding import decode_body
from schemas.fetch import Capture, Original

IDENTICAL_PAYLOAD = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
NOT_MODIFIED = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
HTTP_RESPONSE = "application/http; msgtype=response"
HTTP_REQUEST = "application/http; msgtype=request"
WARC_FIELDS = "application/warc-fields"

_IDS = uuid.UUID("6b1f2b0e-6f4c-5f0a-9d0e-0a6d3b2c9f51")
# So much of a compressed body nearly always holds the head; the whole is only tried when it does not.
_HEAD_INPUT_BYTES = 4096
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")
_NOT_URI = re.compile(r'[^\x21-\x7e]|[<>"]')
_URI_SAFE = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '<>"')
_LINE_BREAKS = bytes.maketrans(b"\r\n\0", b"   ")

Fields = list[tuple[str, str]]


class Record(NamedTuple):
    """One record to be written: its fields but for Content-Length, and its block."""

    kind: str
    fields: Fields
    block: bytes


class RecordIds:
    """Names records so that the same crawl, round, attempt, URL, seed and kind give the same id.

    Ids are version 5 UUIDs (RFC 9562): a retried capture that is stored again keeps its ids, two
    crawls never share one. ``crawl`` and ``salt`` are those of crawl.json.
    """

    def __init__(self, crawl: str, salt: str, round_number: int, attempt: str) -> None:
        self._crawl = uuid.uuid5(_IDS, "\n".join((crawl, salt, str(round_number), attempt)))

    def of(self, kind: str, subject: str, seed: str) -> str:
        """Return ``urn:uuid:...`` for the record of this kind about ``subject``."""
        return f"urn:uuid:{uuid.uuid5(self._crawl, chr(10).join((kind, subject, seed)))}"


class CaptureIds(NamedTuple):
    """Ids (``urn:uuid:...``) of the records of one capture and of its file's warcinfo."""

    warcinfo: str
    request: str
    response: str
    metadata: str


def sha1(data: bytes) -> str:
    """Return the SHA-1 of ``data`` in upper-case Base32: 32 characters, no label."""
    return base64.b32encode(hashlib.sha1(data, usedforsecurity=False).digest()).decode("ascii")


def warc_date(at: float) -> str:
    """Return an instant (UTC epoch seconds) as a WARC-Date with microseconds (WARC/1.1 section 5.4)."""
    return f"{_EPOCH + timedelta(microseconds=round(at * 1e6)):%Y-%m-%dT%H:%M:%S.%fZ}"


def warc_uri(url: str) -> str:
    """Return a URL fit for WARC-Target-URI: ASCII without spaces, controls, quotes and angle brackets."""
    return quote(url, safe=_URI_SAFE, errors="replace") if _NOT_URI.search(url) else url


def field_value(value: str) -> str:
    """Return text fit for one line of a record's header: no control characters, no line breaks."""
    return _CONTROL.sub(" ", value).strip()


def ip_address(text: str | None) -> str | None:
    """Return an address as RFC 5952 writes it, an IPv4-mapped one as IPv4; None for what is no address."""
    if text is None:
        return None
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


def http_block(first_line: str, headers: Iterable[tuple[str, str]]) -> bytes:
    """Return an HTTP head with its blank line. Bytes above ASCII stay as received.

    Header texts are latin-1 (one character a byte received); text beyond that is written as UTF-8.
    Line breaks and NULs inside a name or value, which no parser should let pass, become spaces.
    """
    lines = [_line(first_line)]
    lines += [_line(name).strip() + b": " + _line(value).strip(b" \t") for name, value in headers]
    return b"\r\n".join([*lines, b"", b""])


def stored_headers(capture: Capture, is_whole: bool) -> list[tuple[str, str]]:
    """Return the response headers as they are true of the body as stored.

    Transfer-Encoding and a Content-Length that is not the body's become X-Crawler-..., in place, and
    then the true Content-Length follows at the end. When ``is_whole`` is false (a 304, which has no
    body) Content-Length speaks of another message and stays.
    """
    length = str(len(capture.body))
    stored: list[tuple[str, str]] = []
    renamed = stated = False
    for name, value in capture.response_headers:
        key = name.strip().lower()
        if key == "transfer-encoding" or (is_whole and key == "content-length" and value.strip() != length):
            name, renamed = f"X-Crawler-{name.strip()}", True
        stated = stated or (key == "content-length" and not name.startswith("X-Crawler-"))
        stored.append((name, value))
    if renamed and is_whole and not stated:
        stored.append(("Content-Length", length))
    return stored


def content_encoding(capture: Capture) -> str:
    """Return the content codings that the response states, all its fields in one."""
    return ",".join(value for name, value in capture.response_headers if name.lower() == "content-encoding")


def payload_head(capture: Capture, head_bytes: int) -> bytes:
    """Return the beginning of the body with its content coding undone; as sent, where that fails."""
    coding = content_encoding(capture)
    head = decode_body(capture.body[:_HEAD_INPUT_BYTES], coding, head_bytes)
    if head.error and len(capture.body) > _HEAD_INPUT_BYTES:
        head = decode_body(capture.body, coding, head_bytes)
    return head.data


def warcinfo_record(record_id: str, date: str, filename: str, info: Mapping[str, str]) -> Record:
    """Return the first record of a file; ``filename`` is its base name."""
    fields = [
        ("WARC-Type", "warcinfo"),
        ("WARC-Record-ID", f"<{record_id}>"),
        ("WARC-Date", date),
        ("WARC-Filename", filename),
    ]
    return _record("warcinfo", fields, WARC_FIELDS, _warc_fields(info))


def request_record(capture: Capture, ids: CaptureIds, date: str) -> Record:
    """Return the record of what was sent."""
    fields = _fields("request", ids.request, ids, capture, date, ids.response)
    return _record("request", fields, HTTP_REQUEST, http_block(capture.request_line, capture.request_headers))


def response_record(
    capture: Capture, ids: CaptureIds, date: str, payload_digest: str, identified: str | None
) -> Record:
    """Return the record of a response with its body."""
    fields = _fields("response", ids.response, ids, capture, date, ids.request)
    fields.append(("WARC-Payload-Digest", f"sha1:{payload_digest}"))
    fields += [("WARC-Identified-Payload-Type", identified)] if identified else []
    fields += [("WARC-Truncated", field_value(capture.truncated))] if capture.truncated else []
    head = http_block(_status_line(capture), stored_headers(capture, is_whole=True))
    return _record("response", fields, HTTP_RESPONSE, head + capture.body)


def identical_record(
    capture: Capture,
    ids: CaptureIds,
    date: str,
    original: Original,
    payload_digest: str,
    identified: str | None,
) -> Record:
    """Return the revisit of a payload that is stored already (WARC/1.1 section 6.7.2): headers only."""
    fields = _fields("revisit", ids.response, ids, capture, date, ids.request)
    fields += _refers_to(IDENTICAL_PAYLOAD, original)
    fields.append(("WARC-Payload-Digest", f"sha1:{payload_digest}"))
    fields += [("WARC-Identified-Payload-Type", identified)] if identified else []
    fields.append(("WARC-Truncated", "length"))
    head = http_block(_status_line(capture), stored_headers(capture, is_whole=True))
    return _record("revisit", fields, HTTP_RESPONSE, head)


def not_modified_record(capture: Capture, ids: CaptureIds, date: str, original: Original) -> Record:
    """Return the revisit of a 304 answer (WARC/1.1 section 6.7.3); it has no payload digest of its own."""
    fields = _fields("revisit", ids.response, ids, capture, date, ids.request)
    fields += _refers_to(NOT_MODIFIED, original)
    head = http_block(_status_line(capture), stored_headers(capture, is_whole=False))
    return _record("revisit", fields, HTTP_RESPONSE, head)


def metadata_record(capture: Capture, ids: CaptureIds, date: str, metadata: Mapping[str, str]) -> Record:
    """Return the record of facts about the capture that are no part of the exchange."""
    fields = _fields("metadata", ids.metadata, ids, capture, date, ids.response)
    return _record("metadata", fields, WARC_FIELDS, _warc_fields(metadata))


def _line(text: str) -> bytes:
    try:
        line = text.encode("latin-1")
    except UnicodeEncodeError:
        line = text.encode("utf-8", "replace")
    return line.translate(_LINE_BREAKS)


def _warc_fields(fields: Mapping[str, str]) -> bytes:
    lines = (f"{field_value(name)}: {field_value(value)}\r\n" for name, value in fields.items())
    return "".join(lines).encode("utf-8")


def _status_line(capture: Capture) -> str:
    protocol = capture.protocol if capture.protocol in ("HTTP/1.0", "HTTP/1.1") else "HTTP/1.1"
    return f"{protocol} {capture.status} {capture.reason_phrase}"


def _fields(
    kind: str, record_id: str, ids: CaptureIds, capture: Capture, date: str, concurrent_to: str
) -> Fields:
    fields = [
        ("WARC-Type", kind),
        ("WARC-Record-ID", f"<{record_id}>"),
        ("WARC-Date", date),
        ("WARC-Target-URI", warc_uri(capture.url)),
        ("WARC-Warcinfo-ID", f"<{ids.warcinfo}>"),
        ("WARC-Concurrent-To", f"<{concurrent_to}>"),
    ]
    address = ip_address(capture.ip)
    fields += [("WARC-IP-Address", address)] if address else []
    if kind != "metadata" and capture.protocol not in ("HTTP/1.0", "HTTP/1.1"):
        fields.append(("WARC-Protocol", field_value(capture.protocol.lower())))
    return fields


def _refers_to(profile: str, original: Original) -> Fields:
    return [
        ("WARC-Profile", profile),
        ("WARC-Refers-To", f"<{original.record_id.strip('<>')}>"),
        ("WARC-Refers-To-Target-URI", warc_uri(original.url)),
        ("WARC-Refers-To-Date", field_value(original.date)),
    ]


def _record(kind: str, fields: Fields, content_type: str, block: bytes) -> Record:
    fields += [("WARC-Block-Digest", f"sha1:{sha1(block)}"), ("Content-Type", content_type)]
    return Record(kind, fields, block)
