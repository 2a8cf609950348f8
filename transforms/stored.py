"""Bodies out of WARC files, read in the order in which they were written."""

from __future__ import annotations

from collections import OrderedDict
from types import TracebackType
from typing import BinaryIO

from connectors.faults import DamagedFile
from connectors.files import Storage
from connectors.warc_read import DamagedWarc, read_payload
from schemas.fetch import OutcomeRow

OPEN_FILES = 16
REMEMBERED_BYTES = 16 << 20


class StoredBodies:
    """Reads the bodies of a segment's rows; use as a context manager, from one thread.

    On an object store a segment costs as many requests as its size asks for, not as it has pages: its records
    are read ahead, in order. A revisit's body lies elsewhere and is read by a file of its own; the last
    16 MiB of those are remembered, for one body often stands for many URLs.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._files: OrderedDict[tuple[str, bool], BinaryIO] = OrderedDict()
        self._revisited: OrderedDict[tuple[str, int], bytes] = OrderedDict()
        self._revisited_bytes = 0

    def __enter__(self) -> StoredBodies:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in self._files.values():
            file.close()
        self._files.clear()

    def body(self, row: OutcomeRow) -> bytes:
        """Return the row's body as stored, b'' when it has none. Raises DamagedFile for a damaged record."""
        if row.body_filename is None or row.body_offset is None or row.body_length is None:
            return b""
        if not row.is_revisit:
            return self._read(row.body_filename, row.body_offset, row.body_length, is_revisit=False)
        key = (row.body_filename, row.body_offset)
        if key not in self._revisited:
            self._remember(key, self._read(*key, row.body_length, is_revisit=True))
        self._revisited.move_to_end(key)
        return self._revisited[key]

    def _read(self, filename: str, offset: int, length: int, *, is_revisit: bool) -> bytes:
        file = self._open(filename, is_revisit)
        file.seek(offset)
        try:
            return read_payload(file.read(length)).body
        except DamagedWarc as error:
            name = f"{self._storage.root}/{filename}"
            raise DamagedFile(f"{name} is damaged in the record at {offset}: {error}") from error

    def _open(self, filename: str, is_revisit: bool) -> BinaryIO:
        key = (filename, is_revisit)
        if key not in self._files:
            if len(self._files) >= OPEN_FILES:
                self._files.popitem(last=False)[1].close()
            self._files[key] = self._storage.open_read(filename)
        self._files.move_to_end(key)
        return self._files[key]

    def _remember(self, key: tuple[str, int], body: bytes) -> None:
        self._revisited[key] = body
        self._revisited_bytes += len(body)
        while self._revisited_bytes > REMEMBERED_BYTES and len(self._revisited) > 1:
            self._revisited_bytes -= len(self._revisited.popitem(last=False)[1])
