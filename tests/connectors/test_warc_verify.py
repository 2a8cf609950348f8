"""Every fault is found, and sound files have none."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from pathlib import Path

import pytest

from connectors.cdxj import format_row, parse_row
from connectors.warc import ClosedWarc
from connectors.warc_read import iter_members, iter_records
from connectors.warc_verify import MAX_FAULTS, verify_open_warc, verify_warc
from tests.fakes.captures import capture, open_segment, original_of, write_every_kind

Edit = Callable[[list[bytes]], list[bytes]]


def with_fields(line: str, fields: dict[str, str]) -> str:
    row = parse_row(line)
    return format_row(row._replace(fields={**row.fields, **fields}))


def small_file(folder: Path) -> ClosedWarc:
    """Return a file with a response and a revisit of it."""
    segment = open_segment(folder)
    first = segment.write(capture(body=b"<p>hello"), "warc", {"fetchTimeMs": "1"}, None, "planned")
    again = capture("https://b.example/", b"<p>hello")
    segment.write(again, "warc", {}, original_of("https://a.example/", first), "planned")
    return segment.close()[0]


def faults_of(data: bytes, closed: ClosedWarc, digest: str | None = None) -> list[str]:
    return verify_open_warc(io.BytesIO(data), closed.local_path.name, closed.cdxj_lines, digest)


def test_sound_files_have_no_faults(tmp_path: Path) -> None:
    for closed in write_every_kind(tmp_path):
        assert verify_warc(closed.local_path, closed.cdxj_lines, closed.digest) == []
        assert verify_warc(closed.local_path, closed.cdxj_lines) == []


def test_any_flipped_bit_is_found(tmp_path: Path) -> None:
    closed = small_file(tmp_path)
    data = closed.local_path.read_bytes()
    for place in range(len(data)):
        for bit in range(8):
            damaged = data[:place] + bytes([data[place] ^ 1 << bit]) + data[place + 1 :]
            assert faults_of(damaged, closed, closed.digest), f"bit {bit} of byte {place}"


def test_any_flipped_byte_is_found_without_the_file_digest(tmp_path: Path) -> None:
    closed = small_file(tmp_path)
    data = closed.local_path.read_bytes()
    for place in range(len(data)):
        damaged = data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :]
        assert faults_of(damaged, closed), f"byte {place}"


def test_a_fault_names_the_file_and_the_offset(tmp_path: Path) -> None:
    closed = small_file(tmp_path)
    second = list(iter_records(closed.local_path))[2]
    data = bytearray(closed.local_path.read_bytes())
    data[second.offset + 40] ^= 0xFF
    (fault,) = faults_of(bytes(data), closed)
    assert fault.startswith(f"{closed.local_path.name}: offset {second.offset}: ")


@pytest.mark.parametrize("cut", [1, 8, 30, 400])
def test_a_cut_file_is_found(tmp_path: Path, cut: int) -> None:
    closed = small_file(tmp_path)
    assert faults_of(closed.local_path.read_bytes()[:-cut], closed)


@pytest.mark.parametrize("tail", [b"\0", b"more", gzip.compress(b"", mtime=0)])
def test_bytes_after_the_last_member_are_found(tmp_path: Path, tail: bytes) -> None:
    closed = small_file(tmp_path)
    assert faults_of(closed.local_path.read_bytes() + tail, closed)


def test_empty_and_missing_files_are_faults(tmp_path: Path) -> None:
    closed = small_file(tmp_path)
    assert faults_of(b"", closed)
    assert "cannot be read" in verify_warc(tmp_path / "no.warc.gz", [])[0]


def replaced(index: int, old: bytes, new: bytes) -> Edit:
    """Return an edit of one record's text; the digests are not made right again."""

    def edit(members: list[bytes]) -> list[bytes]:
        assert old in members[index]
        return [*members[:index], members[index].replace(old, new), *members[index + 1 :]]

    return edit


# Records of the small file: 0 warcinfo, 1 request, 2 response, 3 metadata, 4 request, 5 revisit.
EDITS: dict[str, tuple[Edit, str]] = {
    "no blank lines": (lambda m: [*m[:2], m[2][:-2], *m[3:]], "two blank lines"),
    "one blank line too many": (lambda m: [*m[:2], m[2] + b"\r\n", *m[3:]], "two blank lines"),
    "two records in a member": (lambda m: [m[0], m[1] + m[2], *m[3:]], "two blank lines"),
    "old version": (replaced(2, b"WARC/1.1", b"WARC/1.0"), "version line"),
    "bare line feed": (replaced(2, b"\r\nWARC-Date", b"\nWARC-Date"), "without CR"),
    "folded line": (replaced(2, b"\r\nWARC-Date", b"\r\n WARC-Date"), "folded"),
    "no colon": (replaced(2, b"WARC-IP-Address:", b"WARC-IP-Address"), "without colon"),
    "no date": (replaced(2, b"WARC-Date", b"X-Date"), "WARC-Date"),
    "date of another time": (replaced(2, b":20.123456Z", b":21.123456Z"), "WARC-Date differs"),
    "date in no format": (replaced(2, b"2025-11-30T", b"2025-11-30 "), "malformed WARC-Date"),
    "no id": (replaced(2, b"WARC-Record-ID", b"X-Record-ID"), "WARC-Record-ID"),
    "id with capitals": (replaced(3, b"<urn:uuid:", b"<URN:UUID:"), "WARC-Record-ID"),
    "wrong length": (
        replaced(2, b"Content-Length: 8\r\n", b"Content-Length: 9\r\n"),
        "Content-Length is not",
    ),
    "transfer coding": (
        replaced(2, b"Content-Type: text/html", b"Transfer-Encoding: chunk"),
        "Transfer-Encoding",
    ),
    "body changed": (replaced(2, b"<p>hello", b"<p>Hello"), "WARC-Payload-Digest"),
    "block changed": (replaced(1, b"User-Agent", b"User-agent"), "WARC-Block-Digest"),
    "metadata changed": (replaced(3, b"fetchTimeMs: 1", b"fetchTimeMs: 2"), "WARC-Block-Digest"),
    "unknown truncation": (replaced(5, b"Truncated: length", b"Truncated: whatever"), "WARC-Truncated"),
    "URI in brackets": (
        replaced(2, b"Target-URI: https://a.example/", b"Target-URI: <https://a.example/>"),
        "WARC-Target-URI",
    ),
    "another URI": (replaced(2, b"https://a.example/", b"https://c.example/"), "WARC-Target-URI differs"),
    "another address": (replaced(2, b"192.0.2.7", b"192.0.2.8"), "WARC-IP-Address differs"),
    "pair in two orders": (lambda m: [m[0], m[2], m[1], *m[3:]], "without request"),
    "request alone": (lambda m: [*m[:5]], "request without response"),
    "two requests": (lambda m: [*m[:2], m[4], *m[2:4], m[5]], "request without response"),
    "metadata first": (lambda m: [m[0], m[3], *m[1:3], *m[4:]], "without response"),
    "no warcinfo": (lambda m: m[1:], "Warcinfo-ID"),
    "two warcinfos": (lambda m: [m[0], *m], "second warcinfo"),
    "warcinfo of another file": (replaced(0, b"Filename: toy", b"Filename: joy"), "WARC-Filename"),
    "a record twice": (lambda m: [*m[:4], *m[1:4], *m[4:]], "used twice"),
    "unknown type": (replaced(3, b"WARC-Type: metadata", b"WARC-Type: resource"), "unexpected record type"),
    "pair not named": (replaced(1, b"WARC-Concurrent-To", b"X-Concurrent-To"), "Concurrent-To"),
    "response names no request": (replaced(2, b"WARC-Concurrent-To", b"X-Concurrent-To"), "Concurrent-To"),
    "revisit of nothing": (replaced(5, b"WARC-Refers-To:", b"X-Refers-To:"), "names no original"),
    "unknown profile": (replaced(5, b"identical-payload-digest", b"identical"), "WARC-Profile"),
    "revisit without digest": (replaced(5, b"WARC-Payload-Digest", b"X-Payload-Digest"), "payload digest"),
    "revisit with a body": (replaced(5, b"length: 8\r\n\r\n", b"\r\n\r\nlength: 8"), "with a body"),
    "no HTTP": (replaced(2, b"HTTP/1.1 200", b"HTTP/1.1 two"), "no HTTP response"),
    "no length at all": (replaced(4, b"\r\nContent-Length", b"\r\nX-Length"), "no Content-Length"),
}


@pytest.mark.parametrize("name", EDITS)
def test_a_record_that_is_not_as_it_should_be_is_found(tmp_path: Path, name: str) -> None:
    closed = small_file(tmp_path)
    edit, expected = EDITS[name]
    with closed.local_path.open("rb") as file:
        members = [member.data for member in iter_members(file)]
    members[5] = members[5].replace(b"Content-Length: 8", b"Content-length: 8")
    data = b"".join(gzip.compress(member, mtime=0) for member in edit(members))
    assert expected in " ".join(faults_of(data, closed))


def test_rows_must_be_those_of_the_captures(tmp_path: Path) -> None:
    closed = small_file(tmp_path)
    rows = closed.cdxj_lines
    data = closed.local_path.read_bytes()

    def faults(*lines: str) -> list[str]:
        return verify_open_warc(io.BytesIO(data), closed.local_path.name, lines)

    assert "without index row" in faults(rows[0])[0]
    assert faults(*rows, rows[0])
    for field, value in {
        "url": "https://c.example/",
        "status": "404",
        "digest": "A" * 32,
        "offset": "0",
        "length": "7",
        "filename": "warc/000001/warc/other.warc.gz",
        "mime": "warc/revisit",
    }.items():
        assert faults(with_fields(rows[0], {field: value}), rows[1]), field
    later = parse_row(rows[0])._replace(timestamp="20251130105321")
    assert faults(f"{later.key} {later.timestamp} {rows[0].split(' ', 2)[2]}", rows[1])
    assert faults("no row", rows[1])
    assert faults(with_fields(rows[0], {"offset": "x"}), rows[1])


def test_faults_are_not_listed_without_end(tmp_path: Path) -> None:
    closed = small_file(tmp_path)
    with closed.local_path.open("rb") as file:
        members = [member.data for member in iter_members(file)]
    data = b"".join(gzip.compress(member, mtime=0) for member in members * 60)
    assert len(faults_of(data, closed)) == MAX_FAULTS
