"""A seekable file over a store that answers ranges."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

FIRST_READ_BYTES = 1 << 16
LARGEST_READ_BYTES = 1 << 23


class RangedFile(io.RawIOBase):
    """A seekable file over ranged reads.

    It reads ahead: twice as far each time while it is read in order (or skips a little), not far after a
    jump. ``tail`` are
    the file's last bytes, known already: they are never asked for.
    """

    def __init__(self, fetch: Callable[[int, int], bytes], size: int, tail: bytes = b"") -> None:
        self._fetch = fetch
        self._size = size
        self._tail = tail
        self._tail_start = size - len(tail)
        self._position = 0
        self._window = b""
        self._window_start = 0
        self._ahead = FIRST_READ_BYTES

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the offset of the next byte to be read."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to an offset; asks the store for nothing."""
        base = (0, self._position, self._size)[whence]
        if base + offset < 0:
            raise ValueError(f"negative offset: {base + offset}")
        self._position = base + offset
        return self._position

    def readinto(self, target: Any) -> int:
        """Fill ``target`` as far as one window reaches; 0 at the end of the file."""
        wanted = memoryview(target).nbytes
        if self._position >= self._size or not wanted:
            return 0
        if self._position >= self._tail_start:
            start = self._position - self._tail_start
            return self._give(target, self._tail[start : start + wanted])
        end = self._window_start + len(self._window)
        if not self._window_start <= self._position < end:
            is_in_order = end <= self._position <= end + FIRST_READ_BYTES
            self._ahead = min(2 * self._ahead, LARGEST_READ_BYTES) if is_in_order else FIRST_READ_BYTES
            length = max(wanted + FIRST_READ_BYTES, self._ahead)
            self._window_start = self._position
            self._window = self._fetch(self._position, min(length, self._tail_start - self._position))
        start = self._position - self._window_start
        return self._give(target, self._window[start : start + wanted])

    def _give(self, target: Any, piece: bytes) -> int:
        target[: len(piece)] = piece
        self._position += len(piece)
        return len(piece)
