"""The lease on a local disk: a lock of the operating system (flock) that ends with its process."""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from connectors.clock import Clock
from connectors.faults import DamagedFile, LeaseLost, Locked
from connectors.files.base import StorageError
from connectors.files.local import LocalStorage, explained
from connectors.holder import Holder, Standing, Tenure, holder_bytes, new_holder, read_holder

POLL_SECONDS = 0.1
# Somebody who only looks whether the lock is free has it for an instant.
PATIENCE_SECONDS = 0.5

# A forked child inherits the lock's file; it must close it, or it would keep the lock when its parent dies.
_held: set[int] = set()
_fork_guard = threading.Lock()


def _forget_in_child() -> None:
    for descriptor in _held:
        os.close(descriptor)
    _held.clear()
    _fork_guard.release()


os.register_at_fork(
    before=_fork_guard.acquire, after_in_parent=_fork_guard.release, after_in_child=_forget_in_child
)


class LockLease:
    """A lease in ``name``.lock, with what the holder says of itself in ``name``.json beside it.

    A stopped (SIGSTOP) process still holds it; a killed one does not. Works across the machines that
    mount the folder as far as their file system passes flock on.
    """

    renew_every_seconds = 1.0

    def __init__(self, storage: LocalStorage, name: str, clock: Clock, token: str) -> None:
        self._storage = storage
        self._lock_path = f"{storage.root}/{name}.lock"
        self._holder_path = f"{name}.json"
        self._clock = clock
        self._token = token
        self._holder: Holder | None = None
        self._descriptor = -1
        self._process = 0

    def acquire(self, wait_seconds: float = 0.0, stop: threading.Event | None = None) -> Tenure:
        """Take the lock, or raise Locked when it is still held after ``wait_seconds``."""
        end = self._clock.monotonic() + max(wait_seconds, PATIENCE_SECONDS)
        while not self._try_lock():
            if self._clock.monotonic() >= end or self._clock.wait(POLL_SECONDS, stop):
                raise Locked(f"{self._storage.root} is held by {self._last() or 'another process'}")
        earlier = self._last()
        known = earlier is not None or self._storage.exists(self._holder_path)
        self._holder = new_holder(self._token, earlier.epoch + 1 if earlier else 1 + known, self._clock)
        self._storage.write_replace(self._holder_path, holder_bytes(self._holder))
        return Tenure(self._holder.epoch, known and not (earlier and earlier.released))

    def renew(self, progress: Mapping[str, Any]) -> None:
        """Publish progress; raise LeaseLost when the lock file is gone from the folder."""
        if self._holder is None or not self.holds(self._clock.monotonic(), 0.0):
            raise LeaseLost(f"{self._lock_path} is no longer held by this process")
        self._holder = replace(
            self._holder,
            renewals=self._holder.renewals + 1,
            renewed_at=self._clock.now(),
            progress=dict(progress),
        )
        self._storage.write_replace(self._holder_path, holder_bytes(self._holder))

    def holds(self, now_monotonic: float, request_seconds: float) -> bool:
        """Return whether this process has the lock: it then has it until it ends, however slow it is."""
        if self._descriptor < 0 or self._process != os.getpid():
            return False
        return os.fstat(self._descriptor).st_nlink > 0

    def release(self) -> None:
        """Say that the lease is given back, then unlock."""
        if self._descriptor < 0 or self._process != os.getpid():
            return
        try:
            if self._holder is not None and self.holds(0.0, 0.0):
                freed = replace(self._holder, released=True, renewed_at=self._clock.now())
                self._storage.write_replace(self._holder_path, holder_bytes(freed))
        except StorageError:
            pass  # The next holder then takes us for crashed and is more careful than it need be.
        finally:
            with _fork_guard:
                _held.discard(self._descriptor)
                os.close(self._descriptor)
            self._descriptor = -1

    def peek(self) -> Standing | None:
        """Return the holder, live while the lock is held."""
        holder = self._last()
        return Standing(holder, self._is_locked()) if holder else None

    def _try_lock(self) -> bool:
        with explained(self._storage.root, self._holder_path), _fork_guard:
            Path(self._lock_path).parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            if _flock(descriptor, fcntl.LOCK_EX, self._lock_path) and os.fstat(descriptor).st_nlink:
                _held.add(descriptor)
                self._descriptor, self._process = descriptor, os.getpid()
                return True
            os.close(descriptor)
        return False

    def _is_locked(self) -> bool:
        try:
            descriptor = os.open(self._lock_path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            return not _flock(descriptor, fcntl.LOCK_SH, self._lock_path)
        finally:
            os.close(descriptor)

    def _last(self) -> Holder | None:
        try:
            return read_holder(self._storage.read_bytes(self._holder_path), self._holder_path)
        except (FileNotFoundError, DamagedFile):
            return None


def _flock(descriptor: int, kind: int, path: str) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS):
            raise StorageError(f"{path}: this file system has no locks; keep the crawl on another") from error
        raise
    return True
