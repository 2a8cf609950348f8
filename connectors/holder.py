"""What every lease has in common: who holds it, and what a holder can do."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol

from connectors import sealed
from connectors.clock import Clock
from connectors.faults import DamagedFile


@dataclass(frozen=True)
class Holder:
    """Who has a lease, or had it last. Instants are UTC epoch seconds of the holder's clock.

    ``epoch`` counts the holders of this lease, this one included. ``progress`` is what the holder said with
    its last renewal. ``term_seconds`` is how long it counts on the lease after each renewal, 0 where
    the operating system keeps the lock.
    """

    token: str
    epoch: int
    machine: str
    process: int
    acquired_at: float
    renewed_at: float
    renewals: int = 0
    released: bool = False
    progress: dict[str, Any] = field(default_factory=dict)
    term_seconds: float = 0.0

    def __str__(self) -> str:
        since, seen = (
            datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            for at in (self.acquired_at, self.renewed_at)
        )
        return f"process {self.process} on {self.machine} since {since}, last sign of life {seen}"


class Tenure(NamedTuple):
    """A lease just taken. ``after_crash``: the holder before did not release it.

    Then its last requests are known to nobody, and no host may be asked before one full delay has passed.
    """

    epoch: int
    after_crash: bool


class Standing(NamedTuple):
    """The last known holder, and whether it is alive (on an object store: has lately renewed)."""

    holder: Holder
    live: bool


class Lease(Protocol):
    """One holder at a time. An instance is one would-be holder; renewals come from one thread."""

    renew_every_seconds: float

    def acquire(self, wait_seconds: float = 0.0, stop: threading.Event | None = None) -> Tenure:
        """Take the lease; raise Locked when a live holder still has it after ``wait_seconds``.

        A stale lease is waited out whatever ``wait_seconds`` is. Setting ``stop`` ends the wait in Locked.
        """

    def renew(self, progress: Mapping[str, Any]) -> None:
        """Prolong the term and publish progress (JSON values); raise LeaseLost when it is somebody else's."""

    def holds(self, now_monotonic: float, request_seconds: float) -> bool:
        """Return whether a request that starts now and takes at most ``request_seconds`` fits into the term.

        ``now_monotonic`` is of the clock the lease was made with. Cheap: ask before every request.
        """

    def release(self) -> None:
        """Give the lease back, so that the next holder need not wait. Idempotent."""

    def peek(self) -> Standing | None:
        """Return who has the lease or had it last, None when nobody ever did. Takes nothing."""


def new_holder(token: str, epoch: int, clock: Clock, term_seconds: float = 0.0) -> Holder:
    """Return this process as a holder."""
    now = clock.now()
    return Holder(token, epoch, socket.gethostname(), os.getpid(), now, now, term_seconds=term_seconds)


def holder_bytes(holder: Holder) -> bytes:
    """Return the holder as stored; read_holder() is the inverse."""
    return sealed.seal(asdict(holder))


def read_holder(data: bytes, name: str) -> Holder:
    """Return the stored holder; raise DamagedFile, naming ``name``, for anything else."""
    document = sealed.unseal(data, name)
    try:
        return Holder(**{one.name: document[one.name] for one in fields(Holder) if one.name in document})
    except TypeError as error:
        raise DamagedFile(f"{name} is damaged: {error}") from error
