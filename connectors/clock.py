"""The clock as an argument: what waits and measures can be driven by a test."""

from __future__ import annotations

import threading
import time
from typing import Protocol

_MONOTONIC = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock(Protocol):
    """Time as seen by connectors and transforms."""

    def now(self) -> float:
        """Return UTC epoch seconds; may jump."""

    def monotonic(self) -> float:
        """Return seconds that never go back, from an arbitrary start, of this process only."""

    def wait(self, seconds: float, event: threading.Event | None = None) -> bool:
        """Wait ``seconds``, or less when ``event`` is set; return whether it is set."""


class SystemClock:
    """The real clock. Its instances are alike and can be pickled."""

    def now(self) -> float:
        """Return UTC epoch seconds."""
        return time.time()

    def monotonic(self) -> float:
        """Return seconds that also go on while the machine sleeps, where the system counts them."""
        return time.clock_gettime(_MONOTONIC)

    def wait(self, seconds: float, event: threading.Event | None = None) -> bool:
        """Wait ``seconds``, or less when ``event`` is set; return whether it is set."""
        if event is not None:
            return event.wait(max(0.0, seconds))
        time.sleep(max(0.0, seconds))
        return False
