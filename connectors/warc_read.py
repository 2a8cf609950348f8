"""Records out of WARC files: one at an offset, or all in order. Reads what other writers wrote, too."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

READ_BYTES = 1 << 16
REST_BYTES = 64
GZIP_HEADER_BYTES = 10
GZIP_WINDOW = 16 + zlib.MAX_WBITS

_HEAD_END = re.compile(rb"\r?\n\r?\n")
_VERSION = re.compile(rb"WARC/\d+\.\d+\s*$")
_STATUS = re.compile(rb"HTTP/\d[\d.]*\s+(\d{3})\b", re.IGNORECASE)
_BLANK_LINES = re.compile(rb"(?:\r?\n)+")


class DamagedWarc(ValueError):
    """These bytes are no WARC record, or a damaged one; the message says where and why."""


class ParsedFields(NamedTuple):
    """Named fields in order, and what was wrong with their lines."""

    fields: tuple[tuple[str, str], ...]
    faults: tuple[str, ...]


class WarcRecord(NamedTuple):
    """One record. ``offset`` and ``length`` are those of its gzip member (of the record, if not compressed).

    ``head`` are the header bytes as stored, with the version line and the blank line after it; ``rest``
    is the beginning of what follows the block.
    """

    offset: int
    length: int
    fields: tuple[tuple[str, str], ...]
    block: bytes
    head: bytes = b""
    rest: bytes = b""

    def get(self, name: str) -> str | None:
        """Return the first value of a field, whatever the case of its name."""
        return next((value for key, value in self.fields if key.lower() == name.lower()), None)

    @property
    def kind(self) -> str:
        """The WARC-Type, or '' without one."""
        return self.get("WARC-Type") or ""


class Payload(NamedTuple):
    """What an HTTP record holds: status line's code, header texts (latin-1), body as stored, WARC fields."""

    status: int | None
    headers: tuple[tuple[str, str], ...]
    body: bytes
    warc_headers: dict[str, str]


class Member(NamedTuple):
    """One gzip member of a file: where it lies, its 10-byte header, its contents."""

    offset: int
    length: int
    header: bytes
    data: bytes


def parse_fields(raw: bytes) -> ParsedFields:
    """Return the named fields of a header block (without version line), joining folded lines.

    Lenient: a missing CR, a missing last line end, Latin-1 text and lines without a colon do not stop
    it; each is named in ``faults``, and a line without a colon is left out.
    """
    fields: list[tuple[str, str]] = []
    faults: list[str] = []
    lines = raw.split(b"\n")
    last = lines.pop()
    lines += [last] if last else []
    if last:
        faults.append("last line without line end")
    for raw_line in lines:
        line = _text(raw_line.rstrip(b"\r"))
        if not raw_line.endswith(b"\r") and raw_line is not last:
            faults.append(f"line end without CR: {line[:80]!r}")
        name, colon, value = line.partition(":")
        if line[:1] in (" ", "\t") and fields:
            fields[-1] = (fields[-1][0], f"{fields[-1][1]} {line.strip()}")
        elif colon:
            fields.append((name.strip(), value.strip()))
        elif line:
            faults.append(f"line without colon: {line[:80]!r}")
    return ParsedFields(tuple(fields), tuple(faults))


def iter_members(file: BinaryIO) -> Iterator[Member]:
    """Yield the gzip members of a file. Raises DamagedWarc at the first damage, with its offset.

    CRC-32 and length of each member are checked. Memory is that of one member.
    """
    offset = 0
    data = file.read(READ_BYTES)
    while data:
        while len(data) < GZIP_HEADER_BYTES and (more := file.read(READ_BYTES)):
            data += more
        header, start = data[:GZIP_HEADER_BYTES], offset
        inflater = zlib.decompressobj(GZIP_WINDOW)
        parts: list[bytes] = []
        while not inflater.eof:
            if not data:
                raise DamagedWarc(f"offset {start}: the gzip member is cut")
            try:
                parts.append(inflater.decompress(data))
            except zlib.error as error:
                raise DamagedWarc(f"offset {start}: {error}") from error
            offset += len(data) - len(inflater.unused_data)
            data = inflater.unused_data or file.read(READ_BYTES)
        yield Member(start, offset - start, header, b"".join(parts))


def parse_record(data: bytes, offset: int, length: int, start: int = 0) -> WarcRecord:
    """Return the record whose version line is at ``start`` of ``data``.

    Raises DamagedWarc when there is no version line, header end or Content-Length, or too few bytes.
    """
    end = _HEAD_END.search(data, start)
    if end is None:
        raise DamagedWarc(f"offset {offset}: no end of the record's header")
    head = data[start : end.end()]
    version, _, raw_fields = head.partition(b"\n")
    if not _VERSION.match(version):
        raise DamagedWarc(f"offset {offset}: no WARC version line but {version[:40]!r}")
    fields = parse_fields(raw_fields).fields
    record = WarcRecord(offset, length, fields, b"", head)
    stated = record.get("Content-Length") or ""
    if not (stated.isascii() and stated.isdigit()):
        raise DamagedWarc(f"offset {offset}: no Content-Length")
    block_end = end.end() + int(stated)
    block = data[end.end() : block_end]
    if len(block) < int(stated):
        raise DamagedWarc(f"offset {offset}: the block has {len(block)} bytes, not {stated}")
    return record._replace(block=block, rest=data[block_end : block_end + REST_BYTES])


def iter_records(source: Path | BinaryIO) -> Iterator[WarcRecord]:
    """Yield all records of a (seekable) WARC file, compressed by members, as a whole, or not at all.

    Records that share a gzip member share its offset and length. Raises DamagedWarc at the first damage,
    after the records before it.
    """
    if isinstance(source, Path):
        with source.open("rb") as file:
            yield from iter_records(file)
        return
    source.seek(0)
    first = source.read(2)
    source.seek(0)
    if first == b"\x1f\x8b":
        for member in iter_members(source):
            yield from _records_of(member)
    elif first:
        yield from _plain_records(source.read())


def read_payload(member: bytes | BinaryIO) -> Payload:
    """Return the HTTP message of the record in one gzip member (the bytes at a record's offset and length).

    The body is as stored: content coding kept, empty for a revisit. Raises DamagedWarc for damaged bytes,
    more than one member, or a record that is no response, revisit or request.
    """
    data = member if isinstance(member, bytes) else member.read()
    inflater = zlib.decompressobj(GZIP_WINDOW)
    try:
        record = parse_record(inflater.decompress(data), 0, len(data))
    except zlib.error as error:
        raise DamagedWarc(f"not one gzip member: {error}") from error
    if not inflater.eof or inflater.unused_data:
        raise DamagedWarc("not one gzip member: cut, or followed by other bytes")
    return http_payload(record)


def http_payload(record: WarcRecord) -> Payload:
    """Return the HTTP message in a record's block. Raises DamagedWarc when the record holds none."""
    if record.kind not in ("response", "revisit", "request"):
        raise DamagedWarc(f"offset {record.offset}: a {record.kind or 'nameless'} record has no HTTP message")
    head, body = split_http(record.block)
    first_line, _, raw_fields = head.partition(b"\n")
    status = _STATUS.match(first_line)
    headers = tuple((name, value) for name, value in _latin1_fields(raw_fields))
    return Payload(int(status[1]) if status else None, headers, body, dict(reversed(record.fields)))


def split_http(block: bytes) -> tuple[bytes, bytes]:
    """Return the head of an HTTP message, blank line included, and its body."""
    end = _HEAD_END.search(block)
    return (block[: end.end()], block[end.end() :]) if end else (block, b"")


def _records_of(member: Member) -> Iterator[WarcRecord]:
    at = _after_blank_lines(member.data, 0)
    while at < len(member.data):
        record = parse_record(member.data, member.offset, member.length, at)
        yield record
        at = _after_blank_lines(member.data, at + len(record.head) + len(record.block))


def _plain_records(data: bytes) -> Iterator[WarcRecord]:
    at = 0
    while at < len(data):
        record = parse_record(data, at, 0, at)
        end = at + len(record.head) + len(record.block)
        yield record._replace(length=end - at)
        at = _after_blank_lines(data, end)


def _after_blank_lines(data: bytes, at: int) -> int:
    blank = _BLANK_LINES.match(data, at)
    return blank.end() if blank else at


def _latin1_fields(raw: bytes) -> Iterator[tuple[str, str]]:
    for line in raw.decode("latin-1").split("\n"):
        name, colon, value = line.partition(":")
        if colon:
            yield name.strip(" \t\r"), value.strip(" \t\r")


def _text(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")
