"""Other readers accept what we write, whatever a server sent."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from fastwarc.warc import ArchiveIterator
from hypothesis import given
from hypothesis import strategies as st
from warcio.archiveiterator import WARCIterator
from warcio.bufferedreaders import BufferedReader
from warcio.checker import Checker

from connectors.warc_read import http_payload, iter_records
from connectors.warc_verify import verify_warc
from tests.fakes.captures import (
    capture,
    open_segment,
    write_every_kind,
)

NASTY = st.text(st.characters(exclude_categories=[]), max_size=12)
NASTY_HEADERS = st.lists(st.tuples(NASTY, NASTY), max_size=3).map(tuple)


@given(
    url=NASTY,
    headers=NASTY_HEADERS,
    reason=NASTY,
    metadata=st.dictionaries(NASTY, NASTY, max_size=2),
    body=st.binary(max_size=20),
    truncated=st.none() | st.just("length"),
    protocol=st.sampled_from(["HTTP/1.1", "HTTP/1.0", "h2", "ICY\r\n"]),
)
def test_no_text_of_a_server_breaks_a_record(
    tmp_path_factory: pytest.TempPathFactory,
    url: str,
    headers: tuple[tuple[str, str], ...],
    reason: str,
    metadata: dict[str, str],
    body: bytes,
    truncated: str | None,
    protocol: str,
) -> None:
    one = capture(
        f"https://a.example/{url}",
        body,
        response_headers=headers,
        request_headers=headers,
        reason_phrase=reason,
        truncated=truncated,
        protocol=protocol,
    )
    segment = open_segment(tmp_path_factory.mktemp("nasty"), surt_key=lambda url: f"key){len(url)}")
    segment.write(one, "warc", metadata, None, "planned")
    (closed,) = segment.close()
    assert verify_warc(closed.local_path, closed.cdxj_lines, closed.digest) == []
    assert warcio_faults(closed.local_path) == 0
    record = next(r for r in iter_records(closed.local_path) if r.kind == "response")
    assert http_payload(record).body == body
    with closed.local_path.open("rb") as file:
        assert [r.rec_type for r in WARCIterator(file)][:3] == ["warcinfo", "request", "response"]


def warcio_faults(path: Path) -> int:
    checker = Checker(SimpleNamespace(inputs=[str(path)], verbose=False))
    return checker.process_all()


def test_warcio_check_accepts_every_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # warcio 1.8.1 fails on any br body when it finds the package brotli, whose classes take no attributes.
    monkeypatch.delitem(BufferedReader.DECOMPRESSORS, "br", raising=False)
    for closed in write_every_kind(tmp_path):
        assert warcio_faults(closed.local_path) == 0


def test_fastwarc_verifies_the_digests_of_every_kind(tmp_path: Path) -> None:
    for closed in write_every_kind(tmp_path):
        count = 0
        for record in ArchiveIterator(str(closed.local_path), parse_http=False):
            count += 1
            assert record.verify_block_digest()
            record.parse_http()
            if record.headers.get("WARC-Type") == "response":
                assert record.verify_payload_digest()
        assert count == closed.records


def test_two_files_in_a_row_are_still_a_warc_file(tmp_path: Path) -> None:
    files = write_every_kind(tmp_path / "parts")
    whole = tmp_path / "whole.warc.gz"
    whole.write_bytes(b"".join(closed.local_path.read_bytes() for closed in files))
    with whole.open("rb") as file:
        assert sum(1 for _ in WARCIterator(file)) == sum(closed.records for closed in files)
    assert len(list(iter_records(whole))) == sum(closed.records for closed in files)
