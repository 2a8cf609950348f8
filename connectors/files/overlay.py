"""Storage that reads through to a crawl and writes beside it, for commands that must change nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import BinaryIO, TypeAlias

from connectors.files.base import FileInfo, Storage, Versioned
from connectors.files.local import LocalStorage

# The class has a method of the name of the built-in type.
Names: TypeAlias = list[str]
Infos: TypeAlias = list[FileInfo]


@dataclass(frozen=True)
class OverlayStorage(Storage):
    """Shows ``base`` with the files of ``scratch`` on top; everything written goes to ``scratch``.

    ``root`` is the base's, so that messages name the crawl. Nothing of the base is ever written,
    moved or deleted.
    """

    base: Storage
    scratch: LocalStorage

    def _place(self, path: str) -> Storage:
        return self.scratch if self.scratch.exists(path) else self.base

    def read_bytes(self, path: str) -> bytes:
        """Return the whole file."""
        return self._place(path).read_bytes(path)

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Return at most ``length`` bytes from ``offset``."""
        return self._place(path).read_range(path, offset, length)

    def open_read(self, path: str) -> BinaryIO:
        """Return a seekable file to read from."""
        return self._place(path).open_read(path)

    def size(self, path: str) -> int:
        """Return the size in bytes."""
        return self._place(path).size(path)

    def exists(self, path: str) -> bool:
        """Return whether the file is in either place."""
        return self._place(path).exists(path)

    def list(self, prefix: str = "") -> Infos:
        """Return the files of both places, sorted by path."""
        found = {info.path: info for info in (*self.base.list(prefix), *self.scratch.list(prefix))}
        return [found[path] for path in sorted(found)]

    def list_folders(self, prefix: str = "") -> Names:
        """Return the folders of both places, sorted."""
        return sorted({*self.base.list_folders(prefix), *self.scratch.list_folders(prefix)})

    def write_new(self, path: str, data: bytes) -> None:
        """Create the file in the scratch folder."""
        self.scratch.write_new(path, data)

    def publish(self, local_path: str, path: str) -> None:
        """Create the file in the scratch folder."""
        self.scratch.publish(local_path, path)

    def scratch_path(self, path: str) -> str:
        """Return a fresh name in the scratch folder."""
        return self.scratch.scratch_path(path)

    def move(self, source: str, target: str) -> None:
        """Move a file of the scratch folder."""
        self.scratch.move(source, target)

    def delete(self, path: str) -> None:
        """Remove a file of the scratch folder."""
        self.scratch.delete(path)

    def read_versioned(self, path: str) -> Versioned:
        """Return the file with its version."""
        return self._place(path).read_versioned(path)

    def write_replace(self, path: str, data: bytes, version: str | None = None) -> str:
        """Replace a file of the scratch folder."""
        return self.scratch.write_replace(path, data, version)

    def abandoned(self) -> Infos:
        """Return scratch files of the scratch folder."""
        return self.scratch.abandoned()
