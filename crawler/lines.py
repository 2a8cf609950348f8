"""Hosts that share an address stand in line for it."""

from __future__ import annotations

from collections import deque
from math import ceil
from typing import Generic, TypeVar

Entry = TypeVar("Entry")


class Line(Generic[Entry]):
    """The entries whose hosts share an address and whose own time has come.

    ``free_at`` is when the address may be asked next. ``booked_until`` ends the time that was promised to
    hosts for which there was no room.
    """

    __slots__ = ("booked_until", "free_at", "scheduled", "waiting")

    def __init__(self) -> None:
        self.free_at = self.booked_until = 0.0
        self.scheduled = False
        self.waiting: deque[Entry] = deque()

    def has_room(self, most: int, now: float) -> bool:
        """Return whether a newcomer may join: not past those who were sent away to come back."""
        return len(self.waiting) < most and self.booked_until <= now

    def book(self, pause_seconds: float, now: float) -> float:
        """Return the instant at which a newcomer without room shall come back, after all before it."""
        after_waiting = max(now, self.free_at) + len(self.waiting) * pause_seconds
        at = max(self.booked_until, after_waiting)
        self.booked_until = at + pause_seconds
        return at


def most_in_line(queues: int, pause_seconds: float, nap_seconds: float) -> int:
    """Return how many hosts may wait in one line with a back queue each.

    A quarter of the queues, so that one crowded address leaves the others theirs; no more than are served
    within a nap; at least two.
    """
    served = ceil(nap_seconds / pause_seconds) if pause_seconds > 0 else queues
    return max(2, min(queues // 4, served))
