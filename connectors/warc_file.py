"""One WARC file being written: its bytes counted and digested, its captures indexed."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any, NamedTuple

from warcio.recordloader import ArcWarcRecord
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from connectors.warc_records import Record

VERSION = "WARC/1.1"


class ClosedWarc(NamedTuple):
    """One finished file: where it lies, the name it is to have in the crawl folder, and its index.

    ``digest`` is BLAKE2b-128, hex, over the bytes written. ``cdxj_lines`` are sorted.
    """

    subset: str
    local_path: Path
    filename: str
    bytes: int
    digest: str
    records: int
    cdxj_lines: tuple[str, ...]


class _DigestedFile:
    """A new file that counts and digests what is written to it; warcio's flush per record is not obeyed."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("xb")
        self._digest = hashlib.blake2b(digest_size=16)
        self.size = 0

    def write(self, data: bytes) -> int:
        self._digest.update(data)
        self.size += len(data)
        return self._file.write(data)

    def flush(self) -> None:
        """Leave the bytes in the buffer: the file counts only once it is closed."""

    def close(self) -> str:
        self._file.close()
        return self._digest.hexdigest()


class _Writer(WARCWriter):  # type: ignore[misc]
    """warcio's writer of records that carry their digests already, over exactly the bytes of their block."""

    def ensure_digest(self, record: Any, block: bool = True, payload: bool = True) -> None:
        """Add nothing: a digest computed here would be over another range of bytes."""


class _Head(StatusAndHeaders):  # type: ignore[misc]
    """The block of a revisit, which warcio writes from HTTP headers only: these bytes, as they are."""

    def __init__(self, block: bytes) -> None:
        super().__init__("revisit", [])
        self._block = block

    def compute_headers_buffer(self, header_filter: Any = None) -> None:
        """Take the bytes as they are; warcio's own way percent-encodes what is not ASCII."""
        self.headers_buff = self._block


class WarcFile:
    """A new file at ``path``: records in, one gzip member each; ``cdxj_lines`` are the caller's to fill."""

    def __init__(self, path: Path, subset: str, filename: str, warcinfo_id: str) -> None:
        self.subset, self.filename, self.warcinfo_id = subset, filename, warcinfo_id
        self.cdxj_lines: list[str] = []
        self._path = path
        self._out = _DigestedFile(path)
        self._writer = _Writer(self._out, gzip=True, warc_version="1.1")
        self._records = 0

    @property
    def size_bytes(self) -> int:
        """Bytes so far."""
        return self._out.size

    def append(self, records: list[Record]) -> list[tuple[int, int]]:
        """Write records side by side and return (offset, length) of each one's gzip member."""
        places = []
        for record in records:
            offset = self._out.size
            fields = [*record.fields, ("Content-Length", str(len(record.block)))]
            headers = StatusAndHeaders("", fields, protocol=VERSION)
            head = _Head(record.block) if record.kind == "revisit" else None
            stream = io.BytesIO(record.block)
            self._writer.write_record(
                ArcWarcRecord("warc", record.kind, headers, stream, head, None, len(record.block))
            )
            places.append((offset, self._out.size - offset))
        self._records += len(records)
        return places

    def close(self) -> ClosedWarc:
        """End the file."""
        digest = self._out.close()
        lines = tuple(sorted(self.cdxj_lines))
        return ClosedWarc(
            self.subset, self._path, self.filename, self._out.size, digest, self._records, lines
        )
