"""Other readers of WARC files, texts and indexes find what the tables say, and no fault."""

from __future__ import annotations

import io
import json
import random
import subprocess
import sys
import zlib
from pathlib import Path
from typing import NamedTuple

import pytest
from cdxj_indexer.main import CDXJIndexer
from fastwarc.warc import ArchiveIterator, WarcRecordType
from trafilatura import extract

from connectors.cdxj import CdxjRow, format_row
from tests.connectors.test_cdxj import comparable
from tests.consumers.conftest import tool
from tests.fakes.crawls import ToyCrawl

SAMPLE = 1_000
DATATROVE = """
import json, sys
from datatrove.pipeline.readers import WarcReader
reader = WarcReader(sys.argv[1], glob_pattern=sys.argv[2], recursive=True, compression="gzip")
for document in reader.run():
    print(json.dumps([document.metadata["url"], document.text]))
"""


class Read(NamedTuple):
    """What FastWARC finds in the crawl: the newest body of each URL, bodies by record id, revisits as (URL,
    original's id), and the number of responses that are HTML or text.
    """

    pages: dict[str, bytes]
    payloads: dict[str, bytes]
    revisits: list[tuple[str, str]]
    responses: int


@pytest.fixture(scope="module")
def found(crawl: ToyCrawl) -> Read:
    read, responses = Read({}, {}, [], 0), 0
    for path in sorted(crawl.folder.glob("warc/*/warc/*.warc.gz")):
        for record in ArchiveIterator(str(path), parse_http=True):
            url = record.headers.get("WARC-Target-URI")
            if record.record_type == WarcRecordType.response:
                body = record.reader.read()
                read.payloads[record.record_id] = body
                if record.headers.get("WARC-Identified-Payload-Type") in ("text/html", "text/plain"):
                    read.pages[url] = body
                    responses += 1
            elif record.record_type == WarcRecordType.revisit:
                read.revisits.append((url, record.headers["WARC-Refers-To"]))
    return read._replace(responses=responses)


def urls(crawl: ToyCrawl, query: str) -> set[str]:
    return {row[0] for row in crawl.rows(query)}


def test_fastwarc_and_trafilatura_count_the_pages_of_the_table(crawl: ToyCrawl, found: Read) -> None:
    read = dict(found.pages)
    for url, original in found.revisits:
        read[url] = found.payloads[original]
    with_text = {url for url, body in read.items() if (extract(body, fast=True) or "").strip()}
    pages = urls(crawl, "SELECT url FROM {pages}")
    copies = urls(crawl, "SELECT url FROM {duplicates}")
    hidden = urls(crawl, "SELECT url FROM {captures} WHERE reason = 'noindex'")
    empty = urls(crawl, "SELECT url FROM {captures} WHERE detail = 'empty_body'")
    assert set(read) == (pages | copies | hidden) - empty
    counted = with_text - copies - hidden
    print(f"{len(read)} URLs read, {len(counted)} counted; {len(pages)} pages, {len(empty)} of them empty")
    assert counted == urls(crawl, "SELECT url FROM {pages} WHERE length(text) > 0") - copies
    assert len(pages) > 60


def datatrove(folder: Path, pattern: str) -> list[tuple[str, str]]:
    command = [tool("datatrove", "python"), "-c", DATATROVE, str(folder), pattern]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [tuple(json.loads(line)) for line in output.splitlines() if line.startswith("[")]


def test_datatrove_counts_the_html_responses(crawl: ToyCrawl, found: Read) -> None:
    documents = datatrove(crawl.folder, "warc/*/warc/*.warc.gz")
    assert {url for url, _ in documents} == set(found.pages)
    assert len(documents) == found.responses
    pages = urls(crawl, "SELECT url FROM {pages} WHERE length(text) > 0")
    stored_as_revisit = pages - {url for url, _ in documents}
    assert stored_as_revisit <= {url for url, _ in found.revisits}
    print(
        f"{len(documents)} documents; {len(stored_as_revisit)} of {len(pages)} pages lie in revisit records"
    )


def test_datatrove_reads_the_texts_of_the_pages(crawl: ToyCrawl) -> None:
    documents = datatrove(crawl.folder, "wet/*/*.warc.wet.gz")
    wanted = [row for row in crawl.rows("SELECT url, text FROM {pages}") if row[1]]
    assert sorted(documents) == sorted(wanted)


def test_cdxj_indexer_gives_the_same_rows(
    crawl: ToyCrawl, warc_files: list[Path], index_rows: list[CdxjRow], tmp_path: Path
) -> None:
    compared = 0
    for path in warc_files:
        output = tmp_path / "index.cdxj"
        CDXJIndexer(str(output), [str(path)], sort=True).process_all()
        theirs = output.read_text(encoding="utf-8").splitlines()
        name = path.relative_to(crawl.folder).as_posix()
        ours = sorted(format_row(row) for row in index_rows if row.fields["filename"] == name)
        assert [comparable(line, name) for line in ours] == [comparable(line, path.name) for line in theirs]
        compared += len(ours)
    assert compared == len(index_rows) > 200


def test_random_offsets_read_back_their_url(crawl: ToyCrawl, index_rows: list[CdxjRow]) -> None:
    rows = random.Random(7).sample(index_rows, min(SAMPLE, len(index_rows)))
    for row in rows:
        offset, length = int(row.fields["offset"]), int(row.fields["length"])
        with (crawl.folder / row.fields["filename"]).open("rb") as file:
            file.seek(offset)
            member = file.read(length)
        inflater = zlib.decompressobj(16 + zlib.MAX_WBITS)
        inflater.decompress(member)
        assert inflater.eof and not inflater.unused_data
        (record,) = ArchiveIterator(io.BytesIO(member), parse_http=True)
        assert record.headers["WARC-Target-URI"] == row.fields["url"]
        assert record.http_headers.status_code == int(row.fields["status"])
        assert record.headers["WARC-Date"].translate({ord(c): None for c in "-:TZ"})[:14] == row.timestamp
    print(f"{len(rows)} offsets read back")


def test_table_rows_point_to_their_records(crawl: ToyCrawl) -> None:
    rows = crawl.rows(
        "SELECT url, warc_filename, warc_record_offset, warc_record_length, fetch_status FROM {captures} "
        "WHERE warc_filename IS NOT NULL"
    )
    assert len(rows) > 200
    for url, name, offset, length, status in rows:
        with (crawl.folder / name).open("rb") as file:
            file.seek(offset)
            member = file.read(length)
        (record,) = ArchiveIterator(io.BytesIO(member), parse_http=True)
        assert (record.headers["WARC-Target-URI"], record.http_headers.status_code) == (url, status)


def test_warcio_check_finds_nothing(crawl: ToyCrawl, warc_files: list[Path]) -> None:
    files = [*warc_files, *sorted(crawl.folder.glob("wet/*/*"))]
    program = Path(sys.executable).with_name("warcio")
    checked = subprocess.run([program, "check", *files], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stdout) == (0, ""), checked.stdout + checked.stderr


def test_fastwarc_check_finds_nothing(crawl: ToyCrawl, warc_files: list[Path]) -> None:
    checked = 0
    for path in [*warc_files, *sorted(crawl.folder.glob("wet/*/*"))]:
        for record in ArchiveIterator(str(path), parse_http=False, record_types=WarcRecordType.any_type):
            assert record.verify_block_digest(), (path.name, record.record_id)
            if record.headers.get("WARC-Payload-Digest") and record.record_type == WarcRecordType.response:
                record.parse_http()
                assert record.verify_payload_digest(), (path.name, record.record_id)
            checked += 1
    print(f"{checked} records checked")
