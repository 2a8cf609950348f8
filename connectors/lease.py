"""One holder at a time: a lease on the crawl, and one on each shard of a round.

On a local disk the lease is a lock of the operating system, which ends with its process: a rerun after a kill
starts at once, and a stopped process still holds it (connectors.lease_lock). On an object store it is
an object that the holder renews and that a newcomer takes over when it has stood still for the term
(connectors.lease_object).
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

from connectors import layout
from connectors.clock import Clock
from connectors.faults import LeaseLost
from connectors.files import StorageError
from connectors.files.local import LocalStorage
from connectors.files.objects import ObjectStorage
from connectors.holder import Holder, Lease, Standing, Tenure
from connectors.lease_lock import LockLease
from connectors.lease_object import ObjectLease
from connectors.rounds import CrawlFolder

__all__ = ["Holder", "Lease", "LeaseKeeper", "Standing", "Tenure", "crawl_lease", "shard_lease"]


def crawl_lease(folder: CrawlFolder, clock: Clock, lease_seconds: float, token: str = "") -> Lease:
    """Return the lease that the one running round of a crawl holds; not yet acquired.

    ``lease_seconds`` matters on object stores only, and must be longer than the longest request.
    ``token`` names this would-be holder; random by default.
    """
    return _lease(folder, layout.CRAWL_LEASE, clock, lease_seconds, token)


def shard_lease(
    folder: CrawlFolder, number: int, shard: int, clock: Clock, lease_seconds: float, token: str = ""
) -> Lease:
    """Return the lease that the one live attempt of a shard of round ``number`` holds; not yet acquired."""
    return _lease(folder, layout.shard_lease(number, shard), clock, lease_seconds, token)


def _lease(folder: CrawlFolder, name: str, clock: Clock, lease_seconds: float, token: str) -> Lease:
    storage = folder.storage
    token = token or secrets.token_hex(8)
    if isinstance(storage, LocalStorage):
        return LockLease(storage, name, clock, token)
    if isinstance(storage, ObjectStorage):
        return ObjectLease(storage, name, clock, token, lease_seconds)
    raise TypeError(f"no lease for {type(storage).__name__}")


class LeaseKeeper:
    """Renews an acquired lease from a thread for the length of a ``with`` block.

    ``lost`` is set when the lease is somebody else's or its term has run out: then stop asking.
    """

    def __init__(self, lease: Lease, progress: Callable[[], Mapping[str, Any]], clock: Clock) -> None:
        self.lost = threading.Event()
        self._lease = lease
        self._progress = progress
        self._clock = clock
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="lease", daemon=True)

    def __enter__(self) -> LeaseKeeper:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _renew(self) -> None:
        while not self._clock.wait(self._lease.renew_every_seconds, self._ended):
            try:
                self._lease.renew(self._progress())
            except LeaseLost:
                self.lost.set()
                return
            except StorageError:
                # The store may be back before the term runs out.
                if not self._lease.holds(self._clock.monotonic(), 0.0):
                    self.lost.set()
                    return
