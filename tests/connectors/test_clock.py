"""The real clock, and the virtual one that stands in for it."""

from __future__ import annotations

import pickle
import threading

from connectors.clock import Clock, SystemClock
from tests.fakes.clock import FakeClock


def test_the_system_clock_waits_until_told() -> None:
    clock: Clock = pickle.loads(pickle.dumps(SystemClock()))
    event = threading.Event()
    start = clock.monotonic()
    assert not clock.wait(0.01, event)
    assert not clock.wait(-1)
    assert clock.monotonic() >= start + 0.01
    event.set()
    assert clock.wait(600, event)
    assert clock.now() > 1_700_000_000


def test_waiting_on_the_fake_clock_lets_things_happen() -> None:
    clock = FakeClock(now=100.0)
    event = threading.Event()
    seen: list[float] = []
    clock.after(5, lambda: seen.append(clock.now()))
    clock.after(7, event.set)
    clock.after(50, lambda: seen.append(clock.now()))
    assert clock.wait(20, event)
    assert (clock.now(), clock.monotonic(), seen) == (107.0, 7.0, [105.0])
    clock.advance(60)
    assert seen == [105.0, 150.0]
    assert clock.now() == 167.0
