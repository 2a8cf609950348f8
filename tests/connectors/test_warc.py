"""What WarcSegment writes, byte by byte and as other readers see it."""

from __future__ import annotations

import gzip
import hashlib
import io
from pathlib import Path
from typing import Any

import pytest

from connectors.warc import WarcInfo, WarcNaming
from connectors.warc_read import iter_records, read_payload
from tests.fakes.captures import (
    NAMING,
    capture,
    every_kind,
    open_segment,
    write_every_kind,
)


def test_layout_of_a_file_to_the_byte(tmp_path: Path) -> None:
    segment = open_segment(tmp_path, info=WarcInfo("s/1", "me", "obey", "ua", "toy", digest_basis="sha1"))
    one = capture("http://a.example/x", b"hi", response_headers=(("Content-Type", "text/plain"),))
    segment.write(one, "warc", {"fetchTimeMs": "250"}, None, "planned")
    (closed,) = segment.close()
    expected = (Path(__file__).parent.parent / "data" / "golden.warc").read_bytes()
    assert gzip.decompress(closed.local_path.read_bytes()) == expected
    assert expected.count(b"\r\n") == expected.count(b"\n")


def test_each_record_is_one_gzip_member_without_time_or_name(tmp_path: Path) -> None:
    for closed in write_every_kind(tmp_path):
        data = closed.local_path.read_bytes()
        records = list(iter_records(closed.local_path))
        assert sum(record.length for record in records) == len(data) == closed.bytes
        assert len(records) == closed.records
        for record in records:
            header = data[record.offset : record.offset + 8]
            assert header == b"\x1f\x8b\x08\0\0\0\0\0"
            member = gzip.decompress(data[record.offset : record.offset + record.length])
            assert member.startswith(b"WARC/1.1\r\n")
            assert member.endswith(b"\r\n\r\n")


def test_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = (write_every_kind(tmp_path / name) for name in ("a", "b"))
    for one, other in zip(first, second, strict=True):
        assert one.local_path.read_bytes() == other.local_path.read_bytes()
        assert one._replace(local_path=other.local_path) == other
        assert one.digest == hashlib.blake2b(one.local_path.read_bytes(), digest_size=16).hexdigest()


@pytest.mark.parametrize(
    "change", [{"crawl": "b"}, {"salt": "b"}, {"round_number": 2}, {"attempt": "2"}], ids=str
)
def test_ids_tell_crawl_round_and_attempt_apart(tmp_path: Path, change: dict[str, Any]) -> None:
    segments = open_segment(tmp_path / "a"), open_segment(tmp_path / "b", **change)
    ids = {segment.write(capture(), "warc", {}, None, "planned").record_id for segment in segments}
    assert len(ids) == 2


def test_ids_are_unique_and_tell_url_and_seed_apart(tmp_path: Path) -> None:
    segment = open_segment(tmp_path)
    for url in ("https://a.example/", "https://a.example/b"):
        for seed in ("planned", "hop-1"):
            segment.write(capture(url), "warc", {"a": "b"}, None, seed)
    (closed,) = segment.close()
    ids = [record.get("WARC-Record-ID") for record in iter_records(closed.local_path)]
    assert len(set(ids)) == len(ids) == 1 + 4 * 3


def test_the_same_capture_twice_is_a_mistake_of_the_caller(tmp_path: Path) -> None:
    segment = open_segment(tmp_path)
    segment.write(capture(), "warc", {}, None, "planned")
    with pytest.raises(ValueError, match="another seed"):
        segment.write(capture(), "warc", {}, None, "planned")
    with pytest.raises(ValueError, match="subset"):
        segment.write(capture(), "wet", {}, None, "planned")


def test_files_are_made_by_their_first_capture(tmp_path: Path) -> None:
    segment = open_segment(tmp_path)
    assert (segment.size_bytes, segment.total_bytes, list(tmp_path.iterdir())) == (0, 0, [])
    location = segment.write(capture(), "crawldiagnostics", {}, None, "planned")
    assert segment.size_bytes == segment.total_bytes == location.offset + location.length
    (closed,) = segment.close()
    name = "toy-crawldiagnostics-20251130105320-00007-0003.warc.gz"
    assert closed.filename == location.filename == f"warc/000001/crawldiagnostics/{name}"
    assert closed.local_path == tmp_path / name


def test_names_of_the_subsets_differ() -> None:
    names = {NAMING.filename(subset) for subset in ("warc", "crawldiagnostics", "robotstxt")}
    assert len(names) == 3
    assert NAMING.filename("warc") == "toy-20251130105320-00007-0003.warc.gz"


@pytest.mark.parametrize(
    "naming",
    [
        WarcNaming("a/b", "20251130105320", 0, "1"),
        WarcNaming("a", "20251130105320", 0, ".. "),
        WarcNaming("a", "2025", 0, "1"),
        WarcNaming("", "20251130105320", 0, "1"),
    ],
)
def test_parts_of_a_name_that_would_leave_the_folder_are_refused(naming: WarcNaming) -> None:
    with pytest.raises(ValueError, match="not"):
        naming.filename("warc")


def test_request_response_and_metadata_lie_side_by_side(tmp_path: Path) -> None:
    for closed in write_every_kind(tmp_path):
        records = list(iter_records(closed.local_path))
        assert [r.kind for r in records].count("warcinfo") == 1
        assert records[0].get("WARC-Filename") == closed.local_path.name
        for request, main, metadata in zip(records[1::3], records[2::3], records[3::3], strict=True):
            assert [request.kind, metadata.kind] == ["request", "metadata"]
            assert request.get("WARC-Concurrent-To") == main.get("WARC-Record-ID")
            assert main.get("WARC-Concurrent-To") == request.get("WARC-Record-ID")
            assert metadata.get("WARC-Concurrent-To") == main.get("WARC-Record-ID")
            assert {r.get("WARC-Date") for r in (request, main, metadata)} == {"2025-11-30T10:53:20.123456Z"}
            assert len({r.get("WARC-Target-URI") for r in (request, main, metadata)}) == 1


def test_a_location_reads_back_its_body(tmp_path: Path) -> None:
    segment = open_segment(tmp_path)
    locations = [
        (one, segment.write(one, subset, {}, None, f"{number}"))
        for number, (one, subset) in enumerate(every_kind())
    ]
    files = {closed.filename: closed.local_path.read_bytes() for closed in segment.close()}
    for one, location in locations:
        member = files[location.filename][location.offset : location.offset + location.length]
        payload = read_payload(member)
        assert (payload.status, payload.body) == (one.status, one.body)
        assert payload.warc_headers["WARC-Target-URI"] == one.url
        assert payload.warc_headers["WARC-Record-ID"] == f"<{location.record_id}>"
        assert payload.warc_headers["WARC-Date"] == location.date
        assert payload.warc_headers.get("WARC-Payload-Digest") == f"sha1:{location.payload_digest}"
        assert read_payload(io.BytesIO(member)) == payload
