"""Turns at addresses: requests of one process to one address never start too close together."""

from __future__ import annotations

import threading
from collections.abc import Collection
from typing import NamedTuple

from connectors.clock import Clock

PATIENCE_SECONDS = 1.0
FORGET_ABOVE = 4096


class Postponed(NamedTuple):
    """A request that was not sent: ``ip`` has no turn to give before ``seconds`` from now."""

    url: str
    ip: str
    seconds: float


class AddressBusy(Exception):
    """Raised below the Fetcher only, which returns it as Postponed."""

    def __init__(self, address: str, seconds: float) -> None:
        super().__init__(address, seconds)
        self.address = address
        self.seconds = seconds


class _Turns:
    """One address: when it may be asked next (monotonic seconds), and whether a thread waits for that."""

    __slots__ = ("awaited", "free_at")

    def __init__(self) -> None:
        self.free_at = float("-inf")
        self.awaited = False


class AddressPacer:
    """Keeps ``delay_seconds`` between the starts of any two requests to one address, whatever their hosts.

    A turn is taken where the address is known for certain: just before a socket goes to it. Addresses in
    ``exempt`` need no turn. Safe for any number of threads; one thread at most waits for each address, so
    that a crowd of hosts behind one address cannot hold the threads that others need. Memory is bounded by the
    addresses of the last ``delay_seconds``.
    """

    def __init__(self, delay_seconds: float, clock: Clock, exempt: Collection[str] = ()) -> None:
        if not 0 <= delay_seconds < float("inf"):
            raise ValueError(f"delay_seconds must be 0 or more, got {delay_seconds}")
        self._delay_seconds = delay_seconds
        self._clock = clock
        self._exempt = frozenset(exempt)
        self._lock = threading.Lock()
        self._turns: dict[str, _Turns] = {}

    def take(self, address: str) -> float | None:
        """Take the address's next turn; return the seconds that were waited for it.

        None when it is too far off (over ``PATIENCE_SECONDS``) or another thread waits for it: nothing was
        taken, come back in ``seconds_left``.
        """
        if not self._delay_seconds or address in self._exempt:
            return 0.0
        began = self._clock.monotonic()
        with self._lock:
            turns = self._turns_of(address)
            left = turns.free_at - began
            if turns.awaited or left > PATIENCE_SECONDS:
                return None
            turns.awaited = left > 0
            if not turns.awaited:
                turns.free_at = began + self._delay_seconds
                return 0.0
        return self._await(turns, began, left)

    def _await(self, turns: _Turns, began: float, left: float) -> float:
        while left > 0:
            self._clock.wait(left)
            with self._lock:
                now = self._clock.monotonic()
                left = turns.free_at - now
                if left <= 0:
                    turns.free_at = now + self._delay_seconds
                    turns.awaited = False
        return now - began

    def sending(self, address: str) -> None:
        """Count the pause from now: connecting took its time, and only now does the request go out."""
        if self._delay_seconds and address not in self._exempt:
            with self._lock:
                self._turns_of(address).free_at = self._clock.monotonic() + self._delay_seconds

    def seconds_left(self, address: str) -> float:
        """Return the seconds until the address may be asked, 0 for at once."""
        with self._lock:
            turns = self._turns.get(address)
            return 0.0 if turns is None else max(0.0, turns.free_at - self._clock.monotonic())

    def _turns_of(self, address: str) -> _Turns:
        if len(self._turns) > FORGET_ABOVE and address not in self._turns:
            now = self._clock.monotonic()
            self._turns = {
                name: turns for name, turns in self._turns.items() if turns.awaited or turns.free_at > now
            }
        return self._turns.setdefault(address, _Turns())
