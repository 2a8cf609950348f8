"""Reading records of our own and of other writers."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.warc_read import DamagedWarc, iter_members, iter_records, parse_fields, read_payload
from tests.fakes.captures import write_every_kind

RECORD = (
    b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.example/\r\nContent-Length: 23\r\n\r\n"
    b"HTTP/1.1 200 OK\r\n\r\nbody\r\n\r\n"
)
PLAIN = RECORD.replace(b"Content-Length: 23", b"Content-Length: 5").replace(
    b"HTTP/1.1 200 OK\r\n\r\nbody", b"hello"
)


def test_the_three_ways_of_compression_read_the_same(tmp_path: Path) -> None:
    by_member = io.BytesIO(gzip.compress(RECORD) + gzip.compress(PLAIN))
    as_whole = io.BytesIO(gzip.compress(RECORD + PLAIN))
    not_at_all = io.BytesIO(RECORD + PLAIN)
    expected = [b"HTTP/1.1 200 OK\r\n\r\nbody", b"hello"]
    for file in (by_member, as_whole, not_at_all):
        assert [record.block for record in iter_records(file)] == expected
    assert [(r.offset, r.length) for r in iter_records(not_at_all)] == [
        (0, len(RECORD) - 4),
        (len(RECORD), len(PLAIN) - 4),
    ]


class ShortReads(io.BytesIO):
    """A file whose reads bring a few bytes at a time, as at the end of a block or from a socket."""

    def __init__(self, data: bytes, most: int) -> None:
        super().__init__(data)
        self.most = most

    def read(self, size: int | None = -1) -> bytes:
        return super().read(self.most if size is None or size < 0 else min(size, self.most))


@pytest.mark.parametrize("most", [1, 3, 9, 10, 11, 64])
def test_a_members_header_is_whole_wherever_a_read_ends(most: int) -> None:
    member = gzip.compress(RECORD, mtime=0)
    found = list(iter_members(ShortReads(member * 3, most)))
    assert [entry.header for entry in found] == [member[:10]] * 3
    assert [entry.offset for entry in found] == [0, len(member), 2 * len(member)]


def test_an_empty_file_has_no_records() -> None:
    assert list(iter_records(io.BytesIO(b""))) == []


def test_records_before_the_damage_are_read(tmp_path: Path) -> None:
    closed = write_every_kind(tmp_path)[0]
    cut = io.BytesIO(closed.local_path.read_bytes()[:-1])
    seen = []
    with pytest.raises(DamagedWarc, match=r"offset \d+: the gzip member is cut"):
        seen.extend(iter_records(cut))
    seen.clear()
    cut.seek(0)
    try:
        for record in iter_records(cut):
            seen.append(record)
    except DamagedWarc:
        pass
    assert len(seen) == closed.records - 1


def packed(record: bytes) -> bytes:
    """The same bytes at any time of day."""
    return gzip.compress(record, mtime=0)


@pytest.mark.parametrize(
    "member",
    [
        b"",
        b"not gzip",
        packed(RECORD)[:-1],
        packed(RECORD) + packed(RECORD),
        packed(b"WARC/1.1\r\n"),
        packed(RECORD.replace(b"WARC/1.0", b"HTTP/1.0")),
        packed(RECORD.replace(b"Content-Length", b"X-Length")),
        packed(RECORD.replace(b"Length: 23", b"Length: -1")),
        packed(RECORD.replace(b"Length: 23", b"Length: 2300")),
        packed(RECORD.replace(b"response", b"warcinfo")),
    ],
)
def test_a_damaged_member_is_refused(member: bytes) -> None:
    with pytest.raises(DamagedWarc):
        read_payload(member)


def test_payload_of_a_foreign_record() -> None:
    payload = read_payload(
        gzip.compress(RECORD.replace(b"\r\nContent-L", b"\r\nwarc-x: 1\r\nwarc-x: 2\r\nContent-L"))
    )
    assert (payload.status, payload.headers, payload.body) == (200, (), b"body")
    assert payload.warc_headers["WARC-Type"] == "response"
    assert payload.warc_headers["warc-x"] == "1"


def test_fields_are_read_leniently_and_faults_named() -> None:
    fields, faults = parse_fields(b"A: 1\r\nB:2\nC: 3\r\n\tfolded\r\nnothing\r\nD: \xe9: x")
    assert fields == (("A", "1"), ("B", "2"), ("C", "3 folded"), ("D", "\xe9: x"))
    assert len(faults) == 3


@given(st.binary(max_size=200))
def test_no_bytes_break_the_parsers(raw: bytes) -> None:
    parse_fields(raw)
    for data in (raw, gzip.compress(b"WARC/1.1\r\nContent-Length: 3\r\n" + raw)):
        try:
            list(iter_records(io.BytesIO(data)))
        except DamagedWarc:
            continue
