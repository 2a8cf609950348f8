"""Index rows as we make them and as another indexer makes them of the same files; merging."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from cdxj_indexer.main import CDXJIndexer
from hypothesis import given
from hypothesis import strategies as st

from connectors.cdxj import CdxjRow, format_row, merge, mime_of, parse_row, read_lines
from tests.fakes.captures import capture, html, open_segment, original_of, write_every_kind

OURS_ONLY = {"mime-detected", "truncated", "charset", "languages", "redirect"}


def comparable(line: str, filename: str) -> dict[str, Any]:
    """Return a row without our extra fields, the digest's label, and the folder of the file."""
    key, timestamp, fields = parse_row(line)
    shared = {name: value for name, value in fields.items() if name not in OURS_ONLY}
    assert shared.pop("filename").endswith(filename)
    if "digest" in shared:
        shared["digest"] = shared["digest"].removeprefix("sha1:")
    return {"key": key, "timestamp": timestamp, **shared}


def test_rows_are_those_of_cdxj_indexer(tmp_path: Path) -> None:
    for closed in write_every_kind(tmp_path / "warc"):
        output = tmp_path / "index.cdxj"
        CDXJIndexer(str(output), [str(closed.local_path)], sort=True).process_all()
        theirs = output.read_text(encoding="utf-8").splitlines()
        name = closed.local_path.name
        ours = [comparable(line, name) for line in closed.cdxj_lines]
        assert ours == [comparable(line, name) for line in theirs]


def test_filenames_are_relative_to_the_crawl_folder(tmp_path: Path) -> None:
    for closed in write_every_kind(tmp_path):
        assert {parse_row(line).fields["filename"] for line in closed.cdxj_lines} == {closed.filename}


def test_fields_come_in_the_order_of_common_crawl(tmp_path: Path) -> None:
    segment = open_segment(tmp_path)
    one = capture(status=301, truncated="length", response_headers=html({"Location": "/x"}))
    extra = {"redirect": "https://a.example/x", "charset": "UTF-8", "languages": "eng"}
    segment.write(one, "crawldiagnostics", {}, None, "planned", extra)
    (line,) = segment.close()[0].cdxj_lines
    assert list(parse_row(line).fields) == [
        *("url", "mime", "mime-detected", "status", "digest", "length", "offset", "filename"),
        *("charset", "languages", "truncated", "redirect"),
    ]


def test_a_revisit_is_not_called_truncated(tmp_path: Path) -> None:
    segment = open_segment(tmp_path)
    original = original_of("https://a.example/", segment.write(capture(), "warc", {}, None, "planned"))
    stale = capture(status=304, body=b"", truncated="disconnect")
    segment.write(stale, "crawldiagnostics", {}, original, "again")
    (line,) = segment.close()[1].cdxj_lines
    assert "truncated" not in parse_row(line).fields


def test_fields_are_added_later() -> None:
    line = format_row(
        CdxjRow("com,example)/", "20250101000000", {"url": "http://example.com/", "status": "200"})
    )
    assert line == 'com,example)/ 20250101000000 {"url": "http://example.com/", "status": "200"}'
    row = parse_row(line)
    added = format_row(
        row._replace(fields={**row.fields, "languages": "eng", "charset": "UTF-8", "status": "203"})
    )
    assert added.endswith('"status": "203", "charset": "UTF-8", "languages": "eng"}')


@pytest.mark.parametrize("line", ["", "key 2025", "key 2025 []", 'key 2025 {"a": 1}', "key 2025 {"])
def test_what_is_no_row_is_refused(line: str) -> None:
    with pytest.raises(ValueError):
        parse_row(line)


@pytest.mark.parametrize(
    ("value", "mime"),
    [
        ("text/html; charset=x", "text/html"),
        (" Text/HTML\tx", "Text/HTML"),
        ("", ""),
        (";charset=x", ""),
        ("text/h\xe9", "text/h\xe9"),
        ("text/h\xc3\xa9", "text/hé"),
    ],
)
def test_the_media_type_is_the_first_one_sent(value: str, mime: str) -> None:
    assert mime_of((("X", "y"), ("content-TYPE", value), ("Content-Type", "z"))) == mime


def opener(lines: list[str], compress: bool) -> Any:
    data = "".join(f"{line}\n" for line in lines).encode()
    return lambda: io.BytesIO(gzip.compress(data) if compress else data)


LINES = st.lists(st.text("abc)/ é€𝄞", min_size=1, max_size=6).map(lambda text: f"k{text}."), max_size=12)


@given(st.lists(LINES, max_size=9), st.integers(2, 4))
def test_merge_gives_all_rows_in_byte_order(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[str]], fan_in: int
) -> None:
    sources = [opener(sorted(lines), number % 2 == 0) for number, lines in enumerate(files)]
    out = io.BytesIO()
    rows = merge(sources, out, tmp_path_factory.mktemp("scratch"), fan_in)
    merged = gzip.decompress(out.getvalue()).splitlines()
    everything = [line.encode() for lines in files for line in lines]
    assert merged == sorted(everything)
    assert rows == len(everything)


def test_merge_opens_no_more_than_its_fan_in(tmp_path: Path) -> None:
    open_now: set[int] = set()
    most = 0

    class Counted(io.BytesIO):
        def close(self) -> None:
            open_now.discard(id(self))
            super().close()

    def source(number: int) -> Any:
        def open_source() -> BinaryIO:
            nonlocal most
            file = Counted(f"{number:03d}\n".encode())
            open_now.add(id(file))
            most = max(most, len(open_now))
            return file

        return open_source

    out = io.BytesIO()
    assert merge([source(number) for number in range(50)], out, tmp_path, fan_in=5) == 50
    assert gzip.decompress(out.getvalue()).split() == [f"{number:03d}".encode() for number in range(50)]
    assert most <= 5


def test_a_merged_index_is_the_same_bytes_every_time(tmp_path: Path) -> None:
    outs = [io.BytesIO(), io.BytesIO()]
    for out in outs:
        merge([opener(["a", "c"], True), opener(["b"], False)], out, tmp_path)
    assert outs[0].getvalue() == outs[1].getvalue()
    assert outs[0].getvalue()[3:8] == bytes(5), "no name and no time in the gzip header"
    assert list(read_lines(io.BytesIO(outs[0].getvalue()))) == ["a", "b", "c"]


def test_an_unsorted_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not sorted"):
        merge([opener(["b", "a"], False)], io.BytesIO(), tmp_path)


def test_nothing_merges_to_an_empty_index(tmp_path: Path) -> None:
    out = io.BytesIO()
    assert merge([], out, tmp_path) == 0
    assert gzip.decompress(out.getvalue()) == b""
