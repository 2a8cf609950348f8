"""The lease on an object store: an object that its holder replaces again and again.

Safe without comparing two machines' clocks. The holder counts its term from before it sent
its last renewal, and starts no request that could end after it. A newcomer waits until it has seen one
version stand still for a whole term (its own or the holder's, the longer one) on its own clock: that version
was written before it was first seen, so the holder's term, counted from earlier, is over. The store then
lets exactly one replace that version.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from connectors.clock import Clock
from connectors.faults import LeaseLost, Locked
from connectors.files.base import StorageError, VersionChanged
from connectors.files.objects import ObjectStorage
from connectors.holder import Holder, Standing, Tenure, holder_bytes, new_holder, read_holder

# Clocks of two machines run at rates that differ by far less than this part of a term.
MARGIN_SHARE = 0.1
LARGEST_MARGIN_SECONDS = 5.0
RENEWALS_A_TERM = 9
LONGEST_POLL_SECONDS = 5.0


class ObjectLease:
    """A lease in the object ``name``.json for ``lease_seconds`` after each renewal."""

    def __init__(
        self, storage: ObjectStorage, name: str, clock: Clock, token: str, lease_seconds: float
    ) -> None:
        self._storage = storage
        self._path = f"{name}.json"
        self._clock = clock
        self._token = token
        self._term = lease_seconds
        self._margin = min(LARGEST_MARGIN_SECONDS, MARGIN_SHARE * lease_seconds)
        self._holder: Holder | None = None
        self._version = ""
        self._renewed_monotonic = 0.0
        self.renew_every_seconds = lease_seconds / RENEWALS_A_TERM

    def acquire(self, wait_seconds: float = 0.0, stop: threading.Event | None = None) -> Tenure:
        """Take the lease: at once when it is free, after a term when its holder is dead.

        Raises Locked when the holder is seen to renew and ``wait_seconds`` have passed.
        """
        begun = self._clock.monotonic()
        seen, seen_at = "", begun
        while True:
            found = self._read()
            now = self._clock.monotonic()
            if found is None or found[0].released:
                tenure = self._take(found, after_crash=False)
            elif found[1] == seen and now - seen_at >= self._patience(found[0]):
                tenure = self._take(found, after_crash=True)
            else:
                if seen and found[1] != seen and now - begun >= wait_seconds:
                    raise Locked(f"{self._storage.root} is held by {found[0]}")
                if found[1] != seen:
                    seen, seen_at = found[1], now
                if self._clock.wait(self._pause(self._patience(found[0]) - (now - seen_at)), stop):
                    raise Locked(f"{self._storage.root}: stopped while waiting for {found[0]}")
                continue
            if tenure:
                return tenure

    def renew(self, progress: Mapping[str, Any]) -> None:
        """Replace the object by one with the next number; raise LeaseLost when it is not ours any more.

        Raises StorageError when the store keeps failing; the term then runs out by itself.
        """
        if self._holder is None:
            raise LeaseLost(f"{self._storage.root}/{self._path} is not held")
        renewed = replace(
            self._holder,
            renewals=self._holder.renewals + 1,
            renewed_at=self._clock.now(),
            progress=dict(progress),
        )
        started = self._clock.monotonic()
        version = self._replace(renewed, self._version)
        if version is None:
            self._holder = None
            raise LeaseLost(f"{self._storage.root}/{self._path} was taken over by another holder")
        self._holder, self._version, self._renewed_monotonic = renewed, version, started

    def holds(self, now_monotonic: float, request_seconds: float) -> bool:
        """Return whether such a request would end before a newcomer could take over."""
        end = self._renewed_monotonic + self._term - self._margin
        return self._holder is not None and now_monotonic + request_seconds <= end

    def release(self) -> None:
        """Mark the lease as free."""
        if self._holder is not None:
            freed = replace(self._holder, released=True, renewed_at=self._clock.now())
            self._holder = None
            # A lease that could not be released is waited out by the next holder.
            with contextlib.suppress(StorageError):
                self._replace(freed, self._version)

    def peek(self) -> Standing | None:
        """Return the holder; live if it renewed within its term by this machine's clock."""
        found = self._read()
        if found is None:
            return None
        holder = found[0]
        term = holder.term_seconds or self._term
        return Standing(holder, not holder.released and self._clock.now() - holder.renewed_at < term)

    def _patience(self, holder: Holder) -> float:
        """Return how long the holder must stand still: it may have been started with another term."""
        return max(self._term, holder.term_seconds)

    def _pause(self, still_to_wait: float) -> float:
        return max(0.01, min(LONGEST_POLL_SECONDS, self._term / 10, still_to_wait))

    def _read(self) -> tuple[Holder, str] | None:
        try:
            data, version = self._storage.read_versioned(self._path)
        except FileNotFoundError:
            return None
        return read_holder(data, f"{self._storage.root}/{self._path}"), version

    def _take(self, found: tuple[Holder, str] | None, *, after_crash: bool) -> Tenure | None:
        """Replace what was found by this holder; None when somebody else was faster."""
        epoch, version = (found[0].epoch + 1, found[1]) if found else (1, "")
        holder = new_holder(self._token, epoch, self._clock, self._term)
        started = self._clock.monotonic()
        taken = self._replace(holder, version)
        if taken is None:
            return None
        self._holder, self._version, self._renewed_monotonic = holder, taken, started
        return Tenure(epoch, after_crash)

    def _replace(self, holder: Holder, version: str) -> str | None:
        """Return the new version, or None when ``version`` is no longer there and this was not our doing."""
        try:
            return self._storage.write_replace(self._path, holder_bytes(holder), version)
        except VersionChanged:
            found = self._read()
            # The answer to a try that succeeded may have been lost.
            return found[1] if found and found[0] == holder else None
