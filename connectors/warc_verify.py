"""Faults of a WARC file and its index, found by reading every byte again."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from connectors.cdxj import REVISIT_MIME, CdxjRow, parse_row
from connectors.warc_read import (
    Member,
    Payload,
    WarcRecord,
    http_payload,
    iter_members,
    parse_fields,
    parse_record,
    read_payload,
    split_http,
)
from connectors.warc_records import IDENTICAL_PAYLOAD, NOT_MODIFIED, sha1

MAX_FAULTS = 100

_ID = re.compile(r"<urn:uuid:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}>")
_DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z")
_URI = re.compile(r"https?://[\x21-\x7e]+")
_TRUNCATED = {None, "length", "time", "disconnect", "unspecified"}
_CAPTURES = ("response", "revisit")


def verify_warc(path: Path, cdxj_rows: Iterable[str], digest: str | None = None) -> list[str]:
    """Return what is wrong with a file of this crawl and its index rows, at most 100 faults; [] if nothing.

    Checks that the file is a sequence of gzip members of one record each; each record's header lines,
    id (present and unique), date, length, two blank lines and SHA-1 digests; the warcinfo record first
    and named by all others; request, response and metadata of a capture side by side with one date and
    URI; HTTP headers that agree with the stored body; revisits that name their original; and that the
    rows are those of the captures, each read back at its offset. ``digest`` is BLAKE2b-128, hex, of the
    whole file: with it any changed byte is found, without it any but spare bits of the compression.
    """
    try:
        with path.open("rb") as file:
            return verify_open_warc(file, path.name, cdxj_rows, digest)
    except OSError as error:
        return [f"{path.name}: cannot be read: {error.strerror}"]


def verify_open_warc(
    file: BinaryIO, name: str, cdxj_rows: Iterable[str], digest: str | None = None
) -> list[str]:
    """Return the faults, as `verify_warc` does, of a seekable file that is to have the base name ``name``."""
    checker = _Checker(name)
    if digest is not None and _digest(file) != digest:
        checker.fault(0, "the file's digest is not the one recorded")
    file.seek(0)
    try:
        checker.read(file)
        checker.check_rows(file, [parse_row(line) for line in cdxj_rows])
    except ValueError as error:
        checker.faults.append(f"{name}: {error}")
    return checker.faults[:MAX_FAULTS]


def _digest(file: BinaryIO) -> str:
    digest = hashlib.blake2b(digest_size=16)
    while chunk := file.read(1 << 20):
        digest.update(chunk)
    return digest.hexdigest()


class _Checker:
    """What is known of the file while its records pass by."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.faults: list[str] = []
        self._ids: set[str] = set()
        self._warcinfo_id: str | None = None
        self._gzip_header: bytes | None = None
        self._request: WarcRecord | None = None
        self._capture: WarcRecord | None = None
        self._captures: dict[int, tuple[int, str, str, str, str]] = {}

    def fault(self, offset: int, text: str) -> None:
        self.faults.append(f"{self.name}: offset {offset}: {text}")

    def read(self, file: BinaryIO) -> None:
        for member in iter_members(file):
            self._gzip_header = self._gzip_header or member.header
            if member.header != self._gzip_header:
                self.fault(member.offset, "the gzip header differs from that of the first member")
            record = parse_record(member.data, member.offset, member.length)
            for text in _record_faults(record):
                self.fault(record.offset, text)
            self._check_id(record)
            self._check_order(record, member)
            if len(self.faults) >= MAX_FAULTS:
                return
        if self._request is not None:
            self.fault(self._request.offset, "a request without response")
        if self._warcinfo_id is None:
            self.fault(0, "no warcinfo record")

    def _check_id(self, record: WarcRecord) -> None:
        record_id = record.get("WARC-Record-ID") or ""
        if not _ID.fullmatch(record_id):
            self.fault(record.offset, "missing or malformed WARC-Record-ID")
        if record_id in self._ids:
            self.fault(record.offset, f"WARC-Record-ID is used twice: {record_id}")
        self._ids.add(record_id)

    def _check_order(self, record: WarcRecord, member: Member) -> None:
        """Check a record against those before it: warcinfo first, then request, response, metadata."""
        if record.kind == "warcinfo":
            if member.offset:
                self.fault(record.offset, "a second warcinfo record")
            if record.get("WARC-Filename") != self.name:
                self.fault(record.offset, "WARC-Filename is not the file's name")
            self._warcinfo_id = record.get("WARC-Record-ID")
            return
        if record.get("WARC-Warcinfo-ID") != self._warcinfo_id:
            self.fault(record.offset, "WARC-Warcinfo-ID does not name the file's first record")
        if record.kind == "request":
            if self._request is not None:
                self.fault(self._request.offset, "a request without response")
            self._request, self._capture = record, None
        elif record.kind in _CAPTURES:
            self._check_pair(record, self._request, "request")
            self._request, self._capture = None, record
            self._captures[record.offset] = _facts(record)
        elif record.kind == "metadata":
            self._check_pair(record, self._capture, "response")
        else:
            self.fault(record.offset, f"unexpected record type {record.kind!r}")

    def _check_pair(self, record: WarcRecord, partner: WarcRecord | None, kind: str) -> None:
        if partner is None:
            self.fault(record.offset, f"a {record.kind} without {kind} before it")
            return
        for name in ("WARC-Date", "WARC-Target-URI", "WARC-IP-Address"):
            if record.get(name) != partner.get(name):
                self.fault(record.offset, f"{name} differs from that of its {kind}")
        if record.get("WARC-Concurrent-To") != partner.get("WARC-Record-ID"):
            self.fault(record.offset, f"WARC-Concurrent-To does not name its {kind}")
        if kind == "request" and partner.get("WARC-Concurrent-To") != record.get("WARC-Record-ID"):
            self.fault(partner.offset, "WARC-Concurrent-To does not name its response")

    def check_rows(self, file: BinaryIO, rows: list[CdxjRow]) -> None:
        """Compare the index with the captures that were read, and read each row's bytes by themselves."""
        unseen = dict(self._captures)
        for row in rows:
            offset = int(row.fields.get("offset", "-1"))
            if row.fields.get("filename", "").rpartition("/")[2] != self.name:
                self.fault(offset, "an index row names another file")
            if _row_facts(row) != unseen.pop(offset, None):
                self.fault(offset, f"an index row does not agree with its record: {row.fields.get('url')}")
                continue
            file.seek(offset)
            payload = read_payload(file.read(int(row.fields["length"])))
            if payload.warc_headers.get("WARC-Target-URI") != row.fields["url"]:
                self.fault(offset, "another URL is at the offset of an index row")
        for offset in unseen:
            self.fault(offset, "a capture without index row")


def _facts(record: WarcRecord) -> tuple[int, str, str, str, str]:
    status = re.match(rb"HTTP/1\.[01] (\d{3})\b", record.block)
    date = re.sub(r"\D", "", record.get("WARC-Date") or "")[:14]
    digest = (record.get("WARC-Payload-Digest") or "").removeprefix("sha1:")
    url = record.get("WARC-Target-URI") or ""
    return record.length, url, date, status[1].decode() if status else "", f"{record.kind} {digest}"


def _row_facts(row: CdxjRow) -> tuple[int, str, str, str, str]:
    kind = "revisit" if row.fields.get("mime") == REVISIT_MIME else "response"
    digest = row.fields.get("digest", "")
    length = int(row.fields.get("length", "-1"))
    return length, row.fields.get("url", ""), row.timestamp, row.fields.get("status", ""), f"{kind} {digest}"


def _record_faults(record: WarcRecord) -> Iterator[str]:
    """Yield what is wrong with one record by itself."""
    if not record.head.startswith(b"WARC/1.1\r\n"):
        yield "the version line is not WARC/1.1"
    if record.rest != b"\r\n\r\n":
        yield "the block is not followed by two blank lines and nothing else"
    raw_fields = record.head.partition(b"\n")[2].removesuffix(b"\r\n")
    yield from parse_fields(raw_fields).faults
    if re.search(rb"[\x00-\x09\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)|\n[ \t]", raw_fields):
        yield "a control character or a folded line in the header"
    if not _DATE.fullmatch(record.get("WARC-Date") or ""):
        yield "missing or malformed WARC-Date"
    if record.get("WARC-Block-Digest") != f"sha1:{sha1(record.block)}":
        yield "the block's digest is not WARC-Block-Digest"
    if record.get("WARC-Truncated") not in _TRUNCATED:
        yield "unknown WARC-Truncated"
    if record.kind != "warcinfo" and not _URI.fullmatch(record.get("WARC-Target-URI") or ""):
        yield "missing or malformed WARC-Target-URI"
    if record.kind in _CAPTURES:
        yield from _capture_faults(record, http_payload(record))


def _capture_faults(record: WarcRecord, payload: Payload) -> Iterator[str]:
    if payload.status is None or not split_http(record.block)[0].endswith(b"\r\n\r\n"):
        yield "the block is no HTTP response"
    if any(name.lower() == "transfer-encoding" for name, _ in payload.headers):
        yield "Transfer-Encoding on a body without one"
    if record.kind == "revisit":
        yield from _revisit_faults(record, payload)
        return
    if record.get("WARC-Payload-Digest") != f"sha1:{sha1(payload.body)}":
        yield "the body's digest is not WARC-Payload-Digest"
    if any(
        name.lower() == "content-length" and value != str(len(payload.body))
        for name, value in payload.headers
    ):
        yield "Content-Length is not the length of the body"


def _revisit_faults(record: WarcRecord, payload: Payload) -> Iterator[str]:
    if record.get("WARC-Profile") not in (IDENTICAL_PAYLOAD, NOT_MODIFIED):
        yield "unknown WARC-Profile"
    if not (record.get("WARC-Refers-To-Target-URI") and _ID.fullmatch(record.get("WARC-Refers-To") or "")):
        yield "a revisit that names no original"
    if payload.body:
        yield "a revisit with a body"
    if (record.get("WARC-Profile") == IDENTICAL_PAYLOAD) != (record.get("WARC-Payload-Digest") is not None):
        yield "a payload digest is wanted for an identical payload, and for no other revisit"
