"""What object stores have in common: keys, retries of passing failures, reading by ranges."""

from __future__ import annotations

import contextlib
import io
import random
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeVar, cast

from connectors.files.base import (
    AlreadyThere,
    FileInfo,
    Listing,
    Names,
    Storage,
    StorageError,
    VersionChanged,
    Versioned,
    checked,
    digest_of,
    missing,
    scratch_name,
)
from connectors.files.ranged import FIRST_READ_BYTES, RangedFile
from connectors.files.scratch import process_folder

PAUSES_SECONDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 8.0)
TRANSIENT_STATUS = frozenset({408, 429, 500, 502, 503, 504})

Result = TypeVar("Result")


class Passing(Exception):
    """A failure of the store or the network that may be gone at the next try."""


class Refused(Exception):
    """A conditional write met another state than its condition asks for."""


class BeyondEnd(Exception):
    """A range that starts at or after the end of the object."""


class Tail(NamedTuple):
    """The last bytes of an object, and the object's size where the store tells it with them."""

    data: bytes
    size: int | None


class Listed(NamedTuple):
    """One listing: objects as (key, size, modified_at), and the folder keys below a delimiter."""

    objects: Iterable[tuple[str, int, float | None]]
    folders: Iterable[str]


class ObjectStorage(Storage):
    """Objects under gs://bucket/prefix or s3://bucket/prefix.

    Subclasses give the single requests; what a store can answer instead of a result they raise as
    Passing, Refused, BeyondEnd, FileNotFoundError or StorageError.
    """

    @property
    def bucket(self) -> str:
        """The bucket's name."""
        return self.root.partition("://")[2].partition("/")[0]

    @property
    def prefix(self) -> str:
        """What every key of this storage starts with: '' or a text that ends in '/'."""
        inside = self.root.partition("://")[2].partition("/")[2].strip("/")
        return f"{inside}/" if inside else ""

    def read_bytes(self, path: str) -> bytes:
        """Return the whole file."""
        key = self._key(path)
        return self._persist(path, lambda _: self._get(key, 0, None))

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Return at most ``length`` bytes from ``offset``."""
        key = self._key(path)
        if length <= 0:
            return b""
        try:
            return self._persist(path, lambda _: self._get(key, offset, length))
        except BeyondEnd:
            return b""

    def open_read(self, path: str) -> BinaryIO:
        """Return a seekable file that asks for ranges, larger ones while it is read in order.

        Opening gets the last 64 KiB: the whole of most files, and the footer of a Parquet file.
        """
        key = self._key(path)
        try:
            tail = self._persist(path, lambda _: self._get_tail(key, FIRST_READ_BYTES))
        except BeyondEnd:
            tail = Tail(b"", 0)
        size = self.size(path) if tail.size is None else tail.size
        source = RangedFile(lambda offset, length: self.read_range(path, offset, length), size, tail.data)
        return cast(BinaryIO, io.BufferedReader(source))

    def size(self, path: str) -> int:
        """Return the size in bytes."""
        key = self._key(path)
        return self._persist(path, lambda _: self._head(key))

    def exists(self, path: str) -> bool:
        """Return whether the file is there."""
        try:
            self.size(path)
        except FileNotFoundError:
            return False
        return True

    def list(self, prefix: str = "") -> Listing:
        """Return every file whose path starts with ``prefix``, sorted by path."""
        start = len(self.prefix)

        def listing(_: int) -> Listing:
            found = self._list(self.prefix + prefix, folders_only=False).objects
            return sorted(FileInfo(key[start:], size, at) for key, size, at in found)

        return self._persist(prefix, listing)

    def list_folders(self, prefix: str = "") -> Names:
        """Return the names of the folders directly inside ``prefix``."""
        base = self.prefix + prefix

        def listing(_: int) -> Names:
            found = self._list(base, folders_only=True).folders
            return sorted(key[len(base) :].rstrip("/") for key in found)

        return self._persist(prefix, listing)

    def write_new(self, path: str, data: bytes) -> None:
        """Create the file or raise AlreadyThere."""
        self._create(path, io.BytesIO(data), len(data))

    def publish(self, local_path: str, path: str) -> None:
        """Upload a finished local file create-only, and remove it."""
        with open(local_path, "rb") as source:
            self._create(path, source, Path(local_path).stat().st_size)
        Path(local_path).unlink()

    def scratch_path(self, path: str) -> str:
        """Return a fresh file name in this process's own temporary folder, which ends with the process."""
        return str(process_folder() / scratch_name(path))

    def move(self, source: str, target: str) -> None:
        """Copy inside the store, then delete the source.

        A source is moved to one target only. Where the store cannot refuse to copy onto a target that is there,
        two movers write the same bytes twice.
        """
        old, new = self._key(source), self._key(target)
        try:
            self._persist(source, lambda _: self._copy(old, new))
        except FileNotFoundError:
            if not self.exists(target):
                raise
            return
        except Refused:
            pass  # An earlier mover of the same file came as far as this.
        self.delete(source)

    def delete(self, path: str) -> None:
        """Remove the file; no error when it is not there."""
        key = self._key(path)
        with contextlib.suppress(FileNotFoundError):
            self._persist(path, lambda _: self._delete(key))

    def read_versioned(self, path: str) -> Versioned:
        """Return the file with its version."""
        key = self._key(path)
        return self._persist(path, lambda _: self._get_versioned(key))

    def write_replace(self, path: str, data: bytes, version: str | None = None) -> str:
        """Replace the file; with ``version``, raise VersionChanged unless that is still there.

        After a failure that left the outcome open, a try may find its own earlier write and raise
        VersionChanged: who must know reads the file back.
        """
        key = self._key(path)
        try:
            return self._persist(path, lambda _: self._put(key, io.BytesIO(data), len(data), version))
        except (Refused, FileNotFoundError) as error:
            raise VersionChanged(f"{self.root}/{path} was replaced by somebody else") from error

    def abandoned(self) -> Listing:
        """Return nothing: an upload that died leaves no object."""
        return []

    def _key(self, path: str) -> str:
        return self.prefix + checked(path)

    def _answer(self, status: int, message: str, *, bucket_missing: bool) -> Exception:
        """Return what to raise for an HTTP status."""
        where = self.root.removesuffix(self.prefix.rstrip("/")).rstrip("/")
        if status == 404 and bucket_missing:
            return StorageError(f"{where} does not exist: create the bucket first")
        if status in (401, 403):
            return StorageError(f"{where}: access denied; check the credentials ({message})")
        if status in TRANSIENT_STATUS:
            return Passing(message)
        known = {404: FileNotFoundError, 412: Refused, 416: BeyondEnd}
        return known.get(status, StorageError)(f"{where}: {message}")

    def _create(self, path: str, source: BinaryIO, size: int) -> None:
        key = self._key(path)

        def put(earlier_tries: int) -> None:
            source.seek(0)
            try:
                self._put(key, source, size, "")
            except Refused as error:
                # A try whose answer was lost may have succeeded: then this refusal is our own file.
                if not (earlier_tries and self._holds(path, source, size)):
                    raise AlreadyThere(f"{self.root}/{path} is already there") from error

        self._persist(path, put)

    def _holds(self, path: str, source: BinaryIO, size: int) -> bool:
        source.seek(0)
        if self.size(path) != size:
            return False
        with self.open_read(path) as stored:
            return digest_of(stored) == digest_of(source)

    def _persist(self, path: str, request: Callable[[int], Result]) -> Result:
        """Return request(number of earlier tries), tried again with growing pauses after passing failures."""
        for tries, pause in enumerate((*PAUSES_SECONDS, None)):
            try:
                return request(tries)
            except FileNotFoundError as error:
                raise missing(self.root, path) from error
            except Passing as failure:
                if pause is None:
                    raise StorageError(
                        f"{self.root}/{path}: the store failed {tries + 1} times in a row ({failure}); "
                        "run the command again later"
                    ) from failure
            time.sleep(pause * random.uniform(0.5, 1.0))
        raise AssertionError

    @abstractmethod
    def _get(self, key: str, offset: int, length: int | None) -> bytes:
        """Return an object, or a range of it; raise BeyondEnd for an empty range."""

    @abstractmethod
    def _get_tail(self, key: str, length: int) -> Tail:
        """Return at most ``length`` last bytes of an object; may raise BeyondEnd for an empty one."""

    @abstractmethod
    def _get_versioned(self, key: str) -> Versioned:
        """Return an object and the version that these bytes are."""

    @abstractmethod
    def _head(self, key: str) -> int:
        """Return an object's size."""

    @abstractmethod
    def _put(self, key: str, source: BinaryIO, size: int, version: str | None) -> str:
        """Write an object; the version it must replace is '' for none, None for any. Return the new one."""

    @abstractmethod
    def _copy(self, old: str, new: str) -> None:
        """Copy an object inside the store; may raise Refused when the target is there."""

    @abstractmethod
    def _delete(self, key: str) -> None:
        """Delete an object."""

    @abstractmethod
    def _list(self, prefix: str, *, folders_only: bool) -> Listed:
        """Return the objects whose keys start with ``prefix``, or only the folders at that level."""
