"""An object store in memory, with versions, and with failures and delays on demand."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import BinaryIO

from connectors.files.base import Versioned
from connectors.files.objects import BeyondEnd, Listed, ObjectStorage, Refused, Tail


@dataclass(frozen=True)
class MemoryStorage(ObjectStorage):
    """Objects of one instance. ``before`` and ``after`` are called around what each request does.

    They get the request's name, and may raise Passing (the request failed, or its answer was lost).
    """

    root: str = "mem://bucket/crawl"
    objects: dict[str, tuple[bytes, str]] = field(default_factory=dict)
    hooks: list[Callable[[str, bool], None]] = field(default_factory=list)
    numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    lock: threading.RLock = field(default_factory=threading.RLock)

    def _hook(self, name: str, *, done: bool) -> None:
        for hook in self.hooks:
            hook(name, done)

    def _find(self, key: str) -> tuple[bytes, str]:
        if key not in self.objects:
            raise FileNotFoundError(key)
        return self.objects[key]

    def _get(self, key: str, offset: int, length: int | None) -> bytes:
        self._hook("get", done=False)
        data = self._find(key)[0]
        if length is None:
            return data
        if offset >= len(data):
            raise BeyondEnd
        return data[offset : offset + length]

    def _get_tail(self, key: str, length: int) -> Tail:
        self._hook("get", done=False)
        data = self._find(key)[0]
        if not data:
            raise BeyondEnd
        return Tail(
            data[-length:], len(data) if len(data) % 2 else None if len(data) >= length else len(data)
        )

    def _get_versioned(self, key: str) -> Versioned:
        self._hook("get", done=False)
        found = Versioned(*self._find(key))
        self._hook("get", done=True)
        return found

    def _head(self, key: str) -> int:
        self._hook("head", done=False)
        return len(self._find(key)[0])

    def _put(self, key: str, source: BinaryIO, size: int, version: str | None) -> str:
        self._hook("put", done=False)
        with self.lock:
            present = self.objects.get(key, (b"", ""))[1]
            if version is not None and version != present:
                raise Refused
            new = str(next(self.numbers))
            self.objects[key] = (source.read(), new)
        self._hook("put", done=True)
        return new

    def _copy(self, old: str, new: str) -> None:
        self._hook("copy", done=False)
        with self.lock:
            data = self._find(old)[0]
            if new in self.objects:
                raise Refused
            self.objects[new] = (data, str(next(self.numbers)))
        self._hook("copy", done=True)

    def _delete(self, key: str) -> None:
        self._hook("delete", done=False)
        self.objects.pop(key, None)
        self._hook("delete", done=True)

    def _list(self, prefix: str, *, folders_only: bool) -> Listed:
        self._hook("list", done=False)
        keys = sorted(key for key in list(self.objects) if key.startswith(prefix))
        if folders_only:
            inner = (key[len(prefix) :] for key in keys)
            return Listed([], sorted({f"{prefix}{key.split('/')[0]}/" for key in inner if "/" in key}))
        return Listed([(key, len(self.objects[key][0]), None) for key in keys], [])
