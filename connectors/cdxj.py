"""The index of WARC files: one sorted line a capture, and the merge of many sorted files into one."""

from __future__ import annotations

import gzip
import heapq
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from connectors.warc_records import warc_uri
from schemas.fetch import Capture, WarcLocation

REVISIT_MIME = "warc/revisit"
FIELD_ORDER = (
    "url",
    "mime",
    "mime-detected",
    "status",
    "digest",
    "length",
    "offset",
    "filename",
    "charset",
    "languages",
    "truncated",
    "redirect",
)
MERGE_FAN_IN = 200
"""Files read at once by a merge; more are merged in several passes."""

_MIME_END = re.compile(r"[;\s]")


class CdxjRow(NamedTuple):
    """One line of the index: SURT key, 14-digit UTC time, and text fields by name."""

    key: str
    timestamp: str
    fields: Mapping[str, str]


def format_row(row: CdxjRow) -> str:
    """Return the line, without its line end: ``key timestamp {json}``, ASCII, fields in a fixed order."""
    known = {name: row.fields[name] for name in FIELD_ORDER if name in row.fields}
    return f"{row.key} {row.timestamp} {json.dumps(known | dict(row.fields))}"


def parse_row(line: str) -> CdxjRow:
    """Return the row of a line. Raises ValueError for a line that is no CDXJ row with text values."""
    key, timestamp, text = line.rstrip("\r\n").split(" ", 2)
    fields = json.loads(text)
    if not isinstance(fields, dict) or not all(isinstance(value, str) for value in fields.values()):
        raise ValueError(f"not a CDXJ row: {line[:200]}")
    return CdxjRow(key, timestamp, fields)


def mime_of(headers: Iterable[tuple[str, str]]) -> str | None:
    """Return the media type that the first Content-Type header states, as sent, without its parameters."""
    for name, value in headers:
        if name.strip().lower() == "content-type":
            raw = value.encode("latin-1", "replace")
            try:
                text = raw.decode("utf-8")
            except UnicodeDecodeError:
                text = raw.decode("latin-1")
            return _MIME_END.split(text.strip(), maxsplit=1)[0]
    return None


def capture_row(
    capture: Capture, location: WarcLocation, surt_key: Callable[[str], str], extra: Mapping[str, str]
) -> CdxjRow:
    """Return the row of the response or revisit record that lies at ``location``.

    A fact that is not known has no field: no ``mime`` without a Content-Type, no ``digest`` for a 304.
    """
    url = warc_uri(capture.url)
    fields = {
        "url": url,
        "mime": REVISIT_MIME if location.is_revisit else location.mime,
        "mime-detected": location.mime_detected,
        "status": str(capture.status),
        "digest": location.payload_digest,
        "length": str(location.length),
        "offset": str(location.offset),
        "filename": location.filename,
        "truncated": None if location.is_revisit else capture.truncated,
    }
    known = {name: value for name, value in fields.items() if value is not None}
    timestamp = re.sub(r"\D", "", location.date)[:14]
    return CdxjRow(surt_key(url), timestamp, {**known, **extra})


def read_lines(file: BinaryIO) -> Iterator[str]:
    """Yield the lines of an index file, gzip-compressed or plain, without line ends."""
    buffered = io.BufferedReader(cast(io.RawIOBase, file)) if not hasattr(file, "peek") else file
    compressed = cast(io.BufferedReader, buffered).peek(2)[:2] == b"\x1f\x8b"
    lines = gzip.GzipFile(fileobj=buffered) if compressed else buffered
    for line in cast(Iterable[bytes], lines):
        yield line.decode("utf-8").rstrip("\r\n")


def write_lines(file: BinaryIO, lines: Iterable[str]) -> int:
    """Write lines as one gzip stream, the same bytes for the same lines, and return their number."""
    rows = 0
    with gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=6, mtime=0) as out:
        for line in lines:
            out.write(line.encode("utf-8") + b"\n")
            rows += 1
    return rows


def merge(
    sources: Sequence[Callable[[], BinaryIO]], out: BinaryIO, scratch: Path, fan_in: int = MERGE_FAN_IN
) -> int:
    """Merge sorted index files into one sorted gzip stream and return the number of rows.

    ``sources`` open the files; at most ``fan_in`` are open at once, and more than that many are first
    merged in groups into files in ``scratch``. Memory does not grow with the rows. Raises ValueError
    when a file is not sorted byte-wise.
    """
    level = 0
    while len(sources) > fan_in:
        groups = [sources[start : start + fan_in] for start in range(0, len(sources), fan_in)]
        merged: list[Callable[[], BinaryIO]] = []
        for number, group in enumerate(groups):
            path = scratch / f"cdxj-{level}-{number}.gz"
            with path.open("wb") as file:
                _merge_group(group, file)
            merged.append(_opener(path))
        sources = merged
        level += 1
    return _merge_group(sources, out)


def _opener(path: Path) -> Callable[[], BinaryIO]:
    return lambda: path.open("rb")


def _merge_group(sources: Sequence[Callable[[], BinaryIO]], out: BinaryIO) -> int:
    with ExitStack() as stack:
        files = [stack.enter_context(open_source()) for open_source in sources]
        return write_lines(out, _in_order(heapq.merge(*map(read_lines, files))))


def _in_order(lines: Iterator[str]) -> Iterator[str]:
    last = ""
    for line in lines:
        if line < last:
            raise ValueError(f"an index file is not sorted at: {line[:200]}")
        last = line
        yield line
