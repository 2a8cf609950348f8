"""Conversion records: what they say of the capture that a text comes from, and what other readers make of them."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from fastwarc.warc import ArchiveIterator, WarcRecordType
from hypothesis import given
from hypothesis import strategies as st
from warcio.archiveiterator import WARCIterator

from connectors.warc import ClosedWarc
from connectors.warc_read import DamagedWarc, iter_records
from connectors.warc_records import RecordIds
from connectors.wet import HEAD_BYTES, Source, TextFile, read_sources
from schemas.fetch import WarcLocation
from tests.connectors.test_warc_consumers import warcio_faults
from tests.fakes.captures import HTML, capture, open_segment, original_of

NAME = "wet/000001/toy-20251130105320-00007-0003.warc.wet.gz"
DATE = "2026-01-02T03:04:05.000001Z"
URL, LONG, COPY = "https://a.example/", f"https://a.example/{'x' * 9_000}", "https://b.example/copy"


def ids() -> RecordIds:
    return RecordIds("toy", "salt", 1, "wet")


def source(url: str = URL) -> Source:
    return Source(url, DATE, "<urn:uuid:00000000-0000-0000-0000-000000000001>")


@pytest.fixture
def warc(tmp_path: Path) -> tuple[ClosedWarc, dict[str, WarcLocation]]:
    segment = open_segment(tmp_path / "warc")
    first = segment.write(capture(URL), "warc", {}, None, "1")
    places = {
        URL: first,
        LONG: segment.write(capture(LONG, HTML + b"2"), "warc", {}, None, "2"),
        COPY: segment.write(capture(COPY), "warc", {}, original_of(URL, first), "3"),
    }
    (closed,) = segment.close()
    return closed, places


def read(closed: ClosedWarc, places: list[tuple[int, int, str]]) -> dict[int, Source]:
    with closed.local_path.open("rb") as file:
        return dict(read_sources(file, places))


def test_sources_are_the_responses_at_their_offsets(
    warc: tuple[ClosedWarc, dict[str, WarcLocation]],
) -> None:
    closed, places = warc
    found = read(closed, [(place.offset, place.length, url) for url, place in places.items()])
    assert list(found) == sorted(place.offset for place in places.values())
    for url, place in places.items():
        original = places[URL] if place.is_revisit else place
        assert found[place.offset] == Source(url, place.date, f"<{original.record_id}>")
    assert places[COPY].is_revisit and len(LONG) > HEAD_BYTES


def test_another_record_than_the_one_wanted_is_refused(
    warc: tuple[ClosedWarc, dict[str, WarcLocation]],
) -> None:
    closed, places = warc
    place = places[URL]
    with pytest.raises(DamagedWarc, match=rf"offset {place.offset}: no capture of {COPY}, but a response"):
        read(closed, [(place.offset, place.length, COPY)])
    with pytest.raises(DamagedWarc, match="offset 0: no capture"):
        read(closed, [(0, 100_000, URL)])
    with pytest.raises(DamagedWarc, match=f"offset {place.offset + 1}"):
        read(closed, [(place.offset + 1, place.length, URL)])
    with pytest.raises(DamagedWarc, match="no WARC record"):
        read(closed, [(place.offset, 30, URL)])
    other = closed.local_path.parent / "other.gz"
    other.write_bytes(gzip.compress(b"Not a record\r\n\r\n"))
    with pytest.raises(DamagedWarc, match="no WARC record"):
        read(closed._replace(local_path=other), [(0, 100, URL)])


@given(texts=st.lists(st.text(max_size=200), max_size=5))
def test_texts_come_back_from_other_readers(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    path = tmp_path_factory.mktemp("wet") / NAME.rpartition("/")[2]
    with TextFile(path, NAME, "warc/000001/warc/a.warc.gz", DATE, ids()) as out:
        for number, text in enumerate(texts):
            out.append(source(f"https://a.example/{number}"), text)
    assert out.records == len(texts)
    with path.open("rb") as file:
        found = [
            (record.rec_headers["WARC-Target-URI"], record.content_stream().read().decode())
            for record in WARCIterator(file)
            if record.rec_type == "conversion"
        ]
    assert found == [(f"https://a.example/{number}", text) for number, text in enumerate(texts)]
    assert warcio_faults(path) == 0
    records = [
        record for record in ArchiveIterator(str(path)) if record.record_type == WarcRecordType.conversion
    ]
    assert len(records) == len(texts)


def test_a_conversion_record_says_where_it_comes_from(tmp_path: Path) -> None:
    path = tmp_path / NAME.rpartition("/")[2]
    with TextFile(path, NAME, "warc/000001/warc/a.warc.gz", DATE, ids()) as out:
        out.append(source(), "Héllo")
    info, text = iter_records(path)
    assert info.get("WARC-Filename") == path.name
    assert b"warc/000001/warc/a.warc.gz" in info.block
    assert text.block == "Héllo".encode()
    assert dict(text.fields) == {
        "WARC-Type": "conversion",
        "WARC-Record-ID": text.get("WARC-Record-ID"),
        "WARC-Date": DATE,
        "WARC-Target-URI": URL,
        "WARC-Warcinfo-ID": info.get("WARC-Record-ID"),
        "WARC-Refers-To": source().refers_to,
        "WARC-Block-Digest": text.get("WARC-Block-Digest"),
        "WARC-Identified-Payload-Type": "text/plain",
        "Content-Type": "text/plain",
        "Content-Length": "6",
    }


def test_the_same_texts_give_the_same_bytes(tmp_path: Path) -> None:
    written = []
    for number in range(2):
        path = tmp_path / f"{number}.gz"
        with TextFile(path, NAME, "warc", DATE, ids()) as out:
            out.append(source(), "text")
        written.append(path.read_bytes())
    assert written[0] == written[1]
