"""A virtual clock: waiting takes no time, and what is due happens in between."""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable


class FakeClock:
    """Starts at a fixed instant; moves only by wait() and advance()."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self._start = now
        self._elapsed = 0.0
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()

    def now(self) -> float:
        return self._start + self._elapsed

    def monotonic(self) -> float:
        return self._elapsed

    def wait(self, seconds: float, event: threading.Event | None = None) -> bool:
        """Move on by ``seconds``, or to the instant at which something due sets the event."""
        self._run(self._elapsed + max(0.0, seconds), event)
        return event is not None and event.is_set()

    def advance(self, seconds: float) -> None:
        """Move on by ``seconds`` and do what falls due."""
        self._run(self._elapsed + seconds, None)

    def after(self, seconds: float, act: Callable[[], None]) -> None:
        """Call ``act`` when the clock has moved on by ``seconds``."""
        heapq.heappush(self._due, (self._elapsed + seconds, next(self._order), act))

    def _run(self, end: float, event: threading.Event | None) -> None:
        while not (event is not None and event.is_set()):
            if not self._due or self._due[0][0] > end:
                self._elapsed = max(self._elapsed, end)
                return
            at, _, act = heapq.heappop(self._due)
            self._elapsed = max(self._elapsed, at)
            act()
