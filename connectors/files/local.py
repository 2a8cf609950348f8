"""Storage in a folder of this machine (or of a mounted file system that has hard links)."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from connectors.files.base import (
    FULL,
    AlreadyThere,
    FileInfo,
    Listing,
    Names,
    NotAFolder,
    Storage,
    StorageError,
    Versioned,
    checked,
    disk_full,
    missing,
    scratch_name,
)

SCRATCH = ".scratch"
REFUSED = (errno.EROFS, errno.EACCES, errno.EPERM)
NOT_A_FOLDER = (errno.ENOTDIR, errno.EISDIR)
NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)

# Linux has it, Python does not offer it.
_syncfs = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)


def explain(error: OSError, path: str) -> OSError:
    """Return the error to raise for a failed operation: with the path and a remedy where one is known."""
    if error.errno in FULL:
        return disk_full(path)
    if error.errno in REFUSED:
        return StorageError(f"{path}: cannot be written or read ({error.strerror}); check its permissions")
    if error.errno in NOT_A_FOLDER:
        return NotAFolder(f"{path}: a file stands where a folder is needed, or the other way round")
    return error


@contextlib.contextmanager
def explained(root: str, path: str) -> Iterator[None]:
    """Turn operating-system errors of the block into ones that name the path and a remedy."""
    try:
        yield
    except (AlreadyThere, StorageError):
        raise
    except FileNotFoundError as error:
        raise missing(root, path) from error
    except OSError as error:
        raise explain(error, f"{root}/{path}") from error


class LocalStorage(Storage):
    """Files in a folder. A new file is a finished temporary that is hard-linked to its name.

    Only write_new syncs, and then the whole file system: one sync of 500 new files took 0.02 s, a sync for
    each of them 6 s. A process killed at any instant loses nothing either way; a machine that
    loses its power loses what came after the last write_new, which no commit names.
    """

    def _full(self, path: str) -> str:
        return f"{self.root}/{checked(path)}"

    def read_bytes(self, path: str) -> bytes:
        """Return the whole file."""
        with explained(self.root, path):
            return Path(self._full(path)).read_bytes()

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Return at most ``length`` bytes from ``offset``."""
        with explained(self.root, path), open(self._full(path), "rb") as source:
            source.seek(offset)
            return source.read(length)

    def open_read(self, path: str) -> BinaryIO:
        """Return the open file."""
        with explained(self.root, path):
            return open(self._full(path), "rb")

    def size(self, path: str) -> int:
        """Return the size in bytes."""
        with explained(self.root, path):
            return Path(self._full(path)).stat().st_size

    def exists(self, path: str) -> bool:
        """Return whether a file is there."""
        return Path(self._full(path)).is_file()

    def list(self, prefix: str = "") -> Listing:
        """Return every file whose path starts with ``prefix``, scratch files left out."""
        folder, _, _ = prefix.rpartition("/")
        with explained(self.root, prefix):
            return sorted(info for info in self._walk(folder, prefix) if _is_within(info.path, prefix))

    def _walk(self, folder: str, prefix: str) -> Iterator[FileInfo]:
        base = f"{folder}/" if folder else ""
        try:
            children = list(os.scandir(f"{self.root}/{folder}"))
        except FileNotFoundError:
            return
        for child in children:
            path = base + child.name
            if path == SCRATCH or not (path.startswith(prefix) or prefix.startswith(f"{path}/")):
                continue
            if child.is_dir():
                yield from self._walk(path, prefix)
            else:
                with contextlib.suppress(FileNotFoundError):
                    stat = child.stat()
                    yield FileInfo(path, stat.st_size, stat.st_mtime)

    def list_folders(self, prefix: str = "") -> Names:
        """Return the names of the folders directly inside ``prefix``."""
        with explained(self.root, prefix):
            try:
                children = list(os.scandir(f"{self.root}/{prefix}"))
            except FileNotFoundError:
                return []
            return sorted(child.name for child in children if child.is_dir() and child.name != SCRATCH)

    def write_new(self, path: str, data: bytes) -> None:
        """Create the file or raise AlreadyThere."""
        target = self._full(path)
        with explained(self.root, path):
            if Path(target).exists():
                raise AlreadyThere(f"{target} is already there")
            temporary = self.scratch_path(path)
            try:
                Path(target).parent.mkdir(parents=True, exist_ok=True)
                _write_and_sync_all(temporary, data)
                self._link_new(temporary, target)
                _sync(str(Path(target).parent))
            finally:
                Path(temporary).unlink(missing_ok=True)

    def publish(self, local_path: str, path: str) -> None:
        """Create ``path`` from a finished local file, and remove that."""
        with explained(self.root, path):
            self._link_new(local_path, self._full(path))
            Path(local_path).unlink()

    def scratch_path(self, path: str) -> str:
        """Return a fresh file name in the scratch folder, which is on the same disk."""
        folder = Path(self.root) / SCRATCH
        with explained(self.root, SCRATCH):
            folder.mkdir(parents=True, exist_ok=True)
        return str(folder / scratch_name(path))

    def move(self, source: str, target: str) -> None:
        """Link ``target`` to ``source``, then remove ``source``."""
        old, new = self._full(source), self._full(target)
        with explained(self.root, source):
            try:
                self._link_new(old, new)
            except FileNotFoundError:
                if not Path(new).is_file():
                    raise
            except AlreadyThere:
                self._refuse_other(source, target)
            Path(old).unlink(missing_ok=True)

    def _refuse_other(self, source: str, target: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            if self.size(source) != self.size(target):
                raise StorageError(f"{self.root}/{target} is not the file to be moved there from {source}")

    def delete(self, path: str) -> None:
        """Remove the file, or an abandoned scratch folder; no error when it is not there."""
        full = Path(self._full(path))
        with explained(self.root, path):
            if path.startswith(f"{SCRATCH}/") and full.is_dir():
                shutil.rmtree(full, ignore_errors=True)
            else:
                full.unlink(missing_ok=True)

    def read_versioned(self, path: str) -> Versioned:
        """Return the file; a local file has no version name."""
        return Versioned(self.read_bytes(path), "")

    def write_replace(self, path: str, data: bytes, version: str | None = None) -> str:
        """Replace the file by a rename. Replacing under a condition is refused with ValueError."""
        if version:
            raise ValueError("a local disk has no conditional replace; use a lock")
        temporary = self.scratch_path(path)
        with explained(self.root, path):
            try:
                Path(temporary).write_bytes(data)
                Path(self._full(path)).parent.mkdir(parents=True, exist_ok=True)
                Path(temporary).replace(self._full(path))
            finally:
                Path(temporary).unlink(missing_ok=True)
        return ""

    def abandoned(self) -> Listing:
        """Return the files and folders in the scratch folder."""
        found = []
        with contextlib.suppress(FileNotFoundError):
            for child in os.scandir(f"{self.root}/{SCRATCH}"):
                with contextlib.suppress(FileNotFoundError):
                    files = os.scandir(child) if child.is_dir() else [child]
                    stats = [file.stat() for file in files]
                    newest = max([child.stat().st_mtime, *(stat.st_mtime for stat in stats)])
                    size = sum(stat.st_size for stat in stats)
                    found.append(FileInfo(f"{SCRATCH}/{child.name}", size, newest))
        return sorted(found)

    def _link_new(self, source: str, target: str) -> None:
        """Give the file ``source`` the name ``target`` if that is free."""
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(source, target)
        except FileExistsError as error:
            raise AlreadyThere(f"{target} is already there") from error
        except OSError as error:
            if error.errno == errno.EXDEV:
                self._link_copy(source, target)
            elif error.errno in NO_LINKS:
                raise StorageError(
                    f"{target}: no hard link could be made ({error.strerror}); "
                    "the crawl needs a writable file system with hard links"
                ) from error
            else:
                raise

    def _link_copy(self, source: str, target: str) -> None:
        """Copy onto the target's disk first: a link cannot cross disks.

        That is the scratch folder's disk, unless a folder of the crawl was put on another one: then
        the copy is hidden beside the target.
        """
        is_scratch = Path(self.root) / SCRATCH in Path(source).parents
        near = f"{Path(target).parent}/.{scratch_name(target)}" if is_scratch else self.scratch_path(target)
        try:
            shutil.copyfile(source, near)
            if is_scratch:
                _sync(near)
            self._link_new(near, target)
        finally:
            Path(near).unlink(missing_ok=True)


def _is_within(path: str, prefix: str) -> bool:
    return path.startswith(prefix) and not path.rpartition("/")[2].startswith(".")


def _write_and_sync_all(path: str, data: bytes) -> None:
    """Write a new file and force it, with everything else on its disk, to be durable."""
    with open(path, "xb") as target:
        target.write(data)
        target.flush()
        if _syncfs is None:
            os.sync()
        elif _syncfs(target.fileno()) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))


def _sync(path: str) -> None:
    """Force a file's bytes, or a folder's names, onto the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
