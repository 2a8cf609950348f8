"""What every kind of storage promises: immutable files under one root, created once and whole."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

READ_BYTES = 1 << 20
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class FileInfo(NamedTuple):
    """One stored file: path relative to the root, size in bytes, time of writing (UTC epoch seconds)."""

    path: str
    size: int
    modified_at: float | None = None


# Aliases, because Storage.list hides the built-in name inside the classes.
Listing = list[FileInfo]
Names = list[str]


class Versioned(NamedTuple):
    """The bytes of a replaceable file and the store's name for exactly this version of it."""

    data: bytes
    version: str


class AlreadyThere(FileExistsError):
    """A create-only write lost: the path holds a file, which was left as it is."""


class StorageError(OSError):
    """The storage refused or failed; the message names the path and what to do about it."""


class NotAFolder(StorageError):
    """A file stands where a folder is needed, or the other way round."""


class VersionChanged(Exception):
    """A conditional replace lost: somebody else replaced the file since it was read."""


def missing(root: str, path: str) -> FileNotFoundError:
    """Return the error for a file that is not there."""
    return FileNotFoundError(f"{path}: no such file in {root}")


def disk_full(path: str) -> StorageError:
    """Return the error for a write that met a full disk or a limit of size."""
    return StorageError(f"{path}: the disk is full; free some space and run the command again")


def is_disk_full(error: BaseException) -> bool:
    """Return whether an error, or the text that a worker elsewhere made of one, tells of a full disk."""
    return any(os.strerror(number) in str(error) for number in FULL)


def checked(path: str) -> str:
    """Return the path; raise ValueError unless it is relative, '/'-separated and inside the root."""
    if path.startswith("/") or any(part in ("", ".", "..") for part in path.split("/")):
        raise ValueError(f"not a path inside the storage root: {path!r}")
    return path


def digest_of(source: BinaryIO) -> str:
    """Return the BLAKE2b-128 digest, hex, of what remains to be read from ``source``."""
    digest = hashlib.blake2b(digest_size=16)
    while block := source.read(READ_BYTES):
        digest.update(block)
    return digest.hexdigest()


@dataclass(frozen=True)
class Storage(ABC):
    """Files under ``root``: a folder, gs://bucket/prefix or s3://bucket/prefix.

    Paths are relative to the root and '/'-separated. Files are bytes: nothing is compressed or
    decompressed on the way, whatever the name ends in. A file is visible under its path only when
    it is complete. Reading a file that is not there raises FileNotFoundError; a storage that refuses
    or keeps failing raises StorageError. An instance holds its root and nothing else, so it can be
    pickled, sent to another machine and shared by threads.
    """

    root: str

    @abstractmethod
    def read_bytes(self, path: str) -> bytes:
        """Return the whole file."""

    @abstractmethod
    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Return at most ``length`` bytes from ``offset``; fewer where the file ends."""

    @abstractmethod
    def open_read(self, path: str) -> BinaryIO:
        """Return a seekable file to read from; on an object store it asks for ranges, never for it all."""

    @abstractmethod
    def size(self, path: str) -> int:
        """Return the size in bytes."""

    @abstractmethod
    def exists(self, path: str) -> bool:
        """Return whether a file (not a folder) is there."""

    @abstractmethod
    def list(self, prefix: str = "") -> Listing:
        """Return every file whose path starts with ``prefix`` (any string), sorted by path."""

    @abstractmethod
    def list_folders(self, prefix: str = "") -> Names:
        """Return the names of the folders directly inside ``prefix`` ('' or 'a/b/'), sorted.

        Costs one listing of that level only, however much lies below it.
        """

    @abstractmethod
    def write_new(self, path: str, data: bytes) -> None:
        """Create the file or raise AlreadyThere. Of many racing calls one wins.

        A commit: when it returns, the file is durable, and so is all that this machine created
        in the storage before.
        """

    @abstractmethod
    def publish(self, local_path: str, path: str) -> None:
        """Create ``path`` from a finished local file, or raise AlreadyThere, and remove the local file.

        The file is whole from its first moment, and durable after the next write_new. Costs no copy on a
        local disk when it comes from scratch_path(). The local file stays where it is when the call raises.
        """

    @abstractmethod
    def scratch_path(self, path: str) -> str:
        """Return a fresh local file name to write what will be published as ``path``; its folder exists."""

    @abstractmethod
    def move(self, source: str, target: str) -> None:
        """Rename the file. Idempotent: no error when the target is there and the source gone."""

    @abstractmethod
    def delete(self, path: str) -> None:
        """Remove the file; no error when it is not there."""

    @abstractmethod
    def read_versioned(self, path: str) -> Versioned:
        """Return the file with its version, for a later write_replace."""

    @abstractmethod
    def write_replace(self, path: str, data: bytes, version: str | None = None) -> str:
        """Replace the file at once and return its new version. For leases and progress only.

        With ``version`` (object stores only) raise VersionChanged unless that version is still there.
        """

    @abstractmethod
    def abandoned(self) -> Listing:
        """Return what scratch_path() named and is there, dead or in use, for a sweep by age.

        Only what lies in the storage itself. A folder is one entry: its size is that of its files, its time
        that of the newest of them. ``delete`` takes it with all that it holds.
        """

    @contextlib.contextmanager
    def creating(self, path: str) -> Iterator[str]:
        """Yield a scratch file name, and publish what the block wrote there as ``path``.

        When the block raises, nothing is published and the scratch file is removed. A full disk in
        the block becomes a StorageError.
        """
        local_path = self.scratch_path(path)
        try:
            yield local_path
            self.publish(local_path, path)
        except OSError as error:
            if error.errno in FULL:
                raise disk_full(local_path) from error
            raise
        finally:
            Path(local_path).unlink(missing_ok=True)

    @contextlib.contextmanager
    def scratch_folder(self, path: str) -> Iterator[Path]:
        """Yield a fresh local folder, in the place of scratch_path(), and remove it with what it holds then.

        A file in it is published without a copy on a local disk. What a killed process leaves is swept.
        """
        folder = Path(self.scratch_path(path))
        try:
            folder.mkdir(mode=0o700)
            yield folder
        except OSError as error:
            if error.errno in FULL:
                raise disk_full(str(folder)) from error
            raise
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def scratch_name(path: str) -> str:
    """Return a file name that nobody else uses: random, and ending as ``path`` does."""
    return f"{secrets.token_hex(8)}-{path.rpartition('/')[2]}"
