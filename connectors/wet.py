"""Texts as WARC conversion records, as Common Crawl's WET files hold them: which record each comes from."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, NamedTuple, Self

from connectors.warc import CONFORMS_TO
from connectors.warc_file import WarcFile
from connectors.warc_read import GZIP_WINDOW, DamagedWarc, WarcRecord, parse_fields
from connectors.warc_records import Record, RecordIds, sha1, warc_uri, warcinfo_record

HEAD_BYTES = 4_096
MOST_HEAD_BYTES = 1 << 20
TEXT = "text/plain"


class Source(NamedTuple):
    """The capture that a text was taken from. ``refers_to`` is the id of the response that holds its payload."""

    url: str
    date: str
    refers_to: str


class TextFile:
    """A new file of conversion records on the local disk; use as a context manager, then publish it.

    Args:
        path: where it is written; nothing may be there.
        name: the name it is to have (its last part stands in WARC-Filename), NAME.warc.wet.gz.
        source: the WARC file that the texts come from.
        date: WARC-Date of the warcinfo record.

    The same texts in the same order give the same bytes.
    """

    def __init__(self, path: Path, name: str, source: str, date: str, ids: RecordIds) -> None:
        self._ids = ids
        self._warcinfo_id = ids.of("warcinfo", name, "")
        self._file = WarcFile(path, "wet", name, self._warcinfo_id)
        info = {
            "software": "roundcrawl",
            "format": "WARC File Format 1.1",
            "conformsTo": CONFORMS_TO,
            "description": f"Main text, UTF-8, of the pages in {source}",
        }
        self._file.append([warcinfo_record(self._warcinfo_id, date, name.rpartition("/")[2], info)])
        self.records = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def append(self, source: Source, text: str) -> None:
        """Write one text (WARC/1.1 section 6.8), with target URI and date of its capture.

        The type is stated as identified, too: readers that do not find it there guess, and drop what
        happens to begin like something else.
        """
        block = text.encode("utf-8", "replace")
        fields = [
            ("WARC-Type", "conversion"),
            ("WARC-Record-ID", f"<{self._ids.of('conversion', source.url, source.refers_to + source.date)}>"),
            ("WARC-Date", source.date),
            ("WARC-Target-URI", source.url),
            ("WARC-Warcinfo-ID", f"<{self._warcinfo_id}>"),
            ("WARC-Refers-To", source.refers_to),
            ("WARC-Block-Digest", f"sha1:{sha1(block)}"),
            ("WARC-Identified-Payload-Type", TEXT),
            ("Content-Type", TEXT),
        ]
        self._file.append([Record("conversion", fields, block)])
        self.records += 1


def read_sources(file: BinaryIO, places: Iterable[tuple[int, int, str]]) -> Iterator[tuple[int, Source]]:
    """Yield (offset, source) of captures in a WARC file, by offset; ``places`` are (offset, length, URL).

    Reads the header of each record, not its block. Raises DamagedWarc, with the offset, where there is no
    capture of that URL.
    """
    for offset, length, url in sorted(places):
        record = _read_head(file, offset, length)
        refers_to = record.get("WARC-Refers-To" if record.kind == "revisit" else "WARC-Record-ID")
        date, found = record.get("WARC-Date"), record.get("WARC-Target-URI")
        if record.kind not in ("response", "revisit") or found != warc_uri(url) or not date or not refers_to:
            raise DamagedWarc(
                f"offset {offset}: no capture of {url}, but a {record.kind or 'nameless'} record"
            )
        yield offset, Source(found, date, refers_to)


def _read_head(file: BinaryIO, offset: int, length: int) -> WarcRecord:
    """Return a record without its block; all but very long headers take one short read."""
    for wanted in (HEAD_BYTES, length):
        file.seek(offset)
        inflater = zlib.decompressobj(GZIP_WINDOW)
        try:
            data = inflater.decompress(file.read(min(wanted, length)), MOST_HEAD_BYTES)
        except zlib.error as error:
            raise DamagedWarc(f"offset {offset}: {error}") from error
        head, mark, _ = data.partition(b"\r\n\r\n")
        if mark:
            version, _, fields = (head + b"\r\n").partition(b"\r\n")
            if version.startswith(b"WARC/"):
                return WarcRecord(offset, length, parse_fields(fields).fields, b"")
            break
    raise DamagedWarc(f"offset {offset}: no WARC record")
