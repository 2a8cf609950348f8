"""The course of a round: requests, pages and active hosts over time, and the tail of the last URLs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transforms.report.captures import CaptureFigures
from transforms.report.counts import TENTHS, Moments

STANDSTILL_SECONDS = 600.0
MOST_BINS = 120
WIDTHS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 21_600, 86_400)
TAIL_SHARES = (0.5, 0.9, 0.99, 1.0)
TAIL_POINTS = 400

Floats = NDArray[np.float64]


class Pace(NamedTuple):
    """A round along its own clock, in seconds since its first request; standstills are cut out.

    ``starts`` are those of bins of ``width`` seconds; rates are a second, ``active`` counts hosts between their
    first and last request. ``tail`` are points (seconds, share of the asked URLs that were done);
    ``reached`` tells after how many seconds each of `TAIL_SHARES` was. ``standstills`` are the seconds of pauses
    of ten minutes or more in which nothing was asked.
    """

    seconds: float
    width: float
    starts: Floats
    requests: Floats
    pages: Floats
    active: Floats
    tail: tuple[Floats, Floats]
    reached: tuple[float, ...]
    standstills: tuple[float, ...]


class Clock:
    """Maps moments (tenths of a second since the epoch) to seconds since the first, without standstills."""

    def __init__(self, moments: Sequence[int]) -> None:
        self._moments = np.unique(np.array(moments, dtype=np.int64))
        steps = np.diff(self._moments, prepend=self._moments[:1])
        is_pause = steps > STANDSTILL_SECONDS * TENTHS
        self.standstills = tuple((steps[is_pause] / TENTHS).tolist())
        self._elapsed = np.cumsum(np.where(is_pause, 1, steps))
        self.seconds = (float(self._elapsed[-1]) + 1) / TENTHS

    def of(self, moments: NDArray[np.int64]) -> Floats:
        """Return the seconds at which known moments began."""
        return self._elapsed[np.searchsorted(self._moments, moments)] / TENTHS


def pace_of(figures: CaptureFigures) -> Pace | None:
    """Return the course of a round, None when it made no request."""
    moments = [*figures.begun, *figures.requests]
    if not moments:
        return None
    clock = Clock(moments)
    width = next((width for width in WIDTHS if clock.seconds <= width * MOST_BINS), WIDTHS[-1])
    edges = np.arange(0.0, clock.seconds + width, width)
    arrived = np.cumsum(_binned(figures.arrivals, clock, edges))
    departed = np.cumsum(_binned(figures.departures, clock, edges))
    tail, reached = _tail(figures.done, clock)
    return Pace(
        seconds=clock.seconds,
        width=width,
        starts=edges[:-1],
        requests=_binned(figures.requests, clock, edges) / width,
        pages=_binned(figures.pages, clock, edges) / width,
        active=arrived - np.concatenate([[0], departed[:-1]]),
        tail=tail,
        reached=reached,
        standstills=clock.standstills,
    )


def _binned(counted: Moments, clock: Clock, edges: Floats) -> Floats:
    if not counted:
        return np.zeros(len(edges) - 1)
    at = clock.of(np.fromiter(counted.keys(), np.int64))
    # Half a tenth more, so that no rounding puts a moment on the wrong side of a bound.
    counts, _ = np.histogram(at + 0.5 / TENTHS, edges, weights=np.fromiter(counted.values(), np.float64))
    return counts


def _tail(done: Moments, clock: Clock) -> tuple[tuple[Floats, Floats], tuple[float, ...]]:
    """Return the curve of the share done, thinned, and when each of the named shares was reached."""
    if not done:
        return (np.zeros(1), np.zeros(1)), ()
    moments = np.array(sorted(done), dtype=np.int64)
    shares = np.cumsum([done[moment] for moment in moments.tolist()]) / sum(done.values())
    ends = clock.of(moments) + 1.0 / TENTHS
    reached = tuple(float(ends[np.searchsorted(shares, share - 1e-12)]) for share in TAIL_SHARES)
    thin = np.unique(np.linspace(0, len(ends) - 1, TAIL_POINTS).astype(int))
    return (np.append(0.0, ends[thin]), np.append(0.0, shares[thin])), reached
