"""State and work files: Parquet in which a changed byte is noticed before it can give a wrong answer.

Every page carries its CRC-32, which Parquet readers check. The footer has no checksum in the format, yet it
decides what is read, and a damaged one can end the whole process inside the decoder. So eight bytes
are put before it, where other readers do not look: ``RCRC`` and the CRC-32 of the footer with its length.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, Self

import pyarrow as pa
import pyarrow.parquet as pq

from connectors.faults import DamagedFile
from connectors.files import Storage, digest_of
from schemas.manifest import FileEntry

MAGIC = b"PAR1"
SEAL_MAGIC = b"RCRC"
SEAL_BYTES = 8
TAIL_BYTES = 8
TAIL_GUESS_BYTES = 1 << 16


class DamagedRun(DamagedFile):
    """A state file that a manifest names is missing or not what was written; ``path`` says which."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path} is damaged: {self.reason}"


def publish_sealed(storage: Storage, local: Path, path: str) -> tuple[int, str]:
    """Seal a closed local Parquet file, publish it as ``path`` and return its bytes and BLAKE2b-128.

    Raises what the storage raises when the path is taken.
    """
    with local.open("r+b") as file:
        seal_footer(file)
        file.seek(0)
        digest = digest_of(file)
        size = file.tell()
    storage.publish(str(local), path)
    return size, digest


def verify(storage: Storage, entry: FileEntry) -> None:
    """Read the whole file and return if its size and BLAKE2b-128 are those of the entry.

    Raises DamagedRun if not, or if the file is missing. Ordinary reads check footer and pages by
    themselves; this is for audits, and for telling damage from a fault of the storage.
    """
    try:
        with storage.open_read(entry.path) as file:
            digest = digest_of(file)
            size = file.tell()
    except FileNotFoundError as error:
        raise DamagedRun(entry.path, "the file is missing") from error
    if size != entry.bytes:
        raise DamagedRun(entry.path, f"{size} bytes, its manifest says {entry.bytes}")
    if digest != entry.digest:
        raise DamagedRun(entry.path, f"digest {digest}, its manifest says {entry.digest}")


class SealedFile:
    """An open state file, read by row groups. Use as a context manager or call ``close``.

    Raises DamagedRun, here and on every read, when the bytes are not those that were written; other
    faults of the storage pass through unchanged, so that a caller may retry them.
    """

    def __init__(self, storage: Storage, entry: FileEntry) -> None:
        self._storage = storage
        self.entry = entry
        try:
            self._file = storage.open_read(entry.path)
        except FileNotFoundError as error:
            raise DamagedRun(entry.path, "the file is missing") from error
        try:
            self.footer = checked_footer(self._file, entry.path, entry.bytes)
            if self.footer.num_rows != entry.rows:
                raise DamagedRun(entry.path, f"{self.footer.num_rows} rows, its manifest says {entry.rows}")
            self._parquet = pq.ParquetFile(
                self._file, metadata=self.footer, pre_buffer=True, page_checksum_verification=True
            )
        except BaseException:
            self._file.close()
            raise
        self.group_rows = [self.footer.row_group(n).num_rows for n in range(self.footer.num_row_groups)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file. Idempotent."""
        self._file.close()

    def rows(self, groups: Sequence[int], columns: list[str] | None = None) -> pa.Table:
        """Return the rows of these row groups, in the order given."""
        wanted = list(groups)
        try:
            rows = self._parquet.read_row_groups(wanted, columns=columns, use_threads=False)
        except (pa.ArrowException, OSError, ValueError) as error:
            verify(self._storage, self.entry)
            error.add_note(f"while reading {self.entry.path}")
            raise
        expected = sum(self.group_rows[group] for group in wanted)
        if rows.num_rows != expected:
            raise DamagedRun(self.entry.path, f"{rows.num_rows} rows in groups {wanted}, not {expected}")
        return rows


def seal_footer(file: BinaryIO) -> None:
    """Move the footer of a closed Parquet file back by eight bytes and put its checksum before it."""
    file.seek(-TAIL_BYTES, 2)
    tail = file.read(TAIL_BYTES)
    length = struct.unpack("<I", tail[:4])[0]
    file.seek(-TAIL_BYTES - length, 2)
    start = file.tell()
    footer = file.read(length) + tail
    file.seek(start)
    file.write(SEAL_MAGIC + struct.pack("<I", zlib.crc32(footer)) + footer)


def checked_footer(file: BinaryIO, path: str, size: int) -> Any:
    """Return the parsed footer of a sealed file of ``size`` bytes; of a small file one read gets it.

    Raises DamagedRun, with ``path``, when it is not the one that was sealed.
    """
    tail = _read_tail(file, size, min(size, TAIL_GUESS_BYTES))
    length = struct.unpack("<I", tail[-TAIL_BYTES:-4])[0] if len(tail) >= TAIL_BYTES else 0
    needed = length + TAIL_BYTES + SEAL_BYTES
    if tail[-4:] != MAGIC or needed > size:
        raise DamagedRun(path, "it does not end as it was written")
    if needed > len(tail):
        tail = _read_tail(file, size, needed)
    seal, footer = tail[-needed:][:SEAL_BYTES], tail[-needed:][SEAL_BYTES:]
    if seal != SEAL_MAGIC + struct.pack("<I", zlib.crc32(footer)):
        raise DamagedRun(path, "its footer has another checksum")
    return pq.read_metadata(pa.BufferReader(MAGIC + footer))


def _read_tail(file: BinaryIO, size: int, length: int) -> bytes:
    file.seek(size - length)
    return file.read(length)
