"""The order in which due URLs are chosen: weighted, random to nobody, the same on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from schemas.state import UrlState

Keys = NDArray[np.uint64]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

DAY_SECONDS = 86_400.0
AGE_UNIT_SECONDS = 30 * DAY_SECONDS
LEAST_WEIGHT = 0.001
_LN2 = 0.6931471805599453
_SQRT_HALF = 0.7071067811865476


class Candidates(NamedTuple):
    """Due URLs as columns of equal length, named after the fields of UrlState."""

    url_key: Keys
    host_key: Keys
    priority: Floats
    depth: Ints
    inlink_domains: Ints
    visits: Ints
    changes: Ints
    next_fetch_at: Floats
    discovered_round: Ints
    was_asked: Flags


def candidates_of(states: Sequence[UrlState]) -> Candidates:
    """Return the columns of these rows, in their order."""
    return Candidates(
        url_key=np.array([s.url_key for s in states], dtype=np.uint64),
        host_key=np.array([s.host_key for s in states], dtype=np.uint64),
        priority=np.array([s.priority for s in states], dtype=np.float64),
        depth=np.array([s.depth for s in states], dtype=np.int64),
        inlink_domains=np.array([s.inlink_domains for s in states], dtype=np.int64),
        visits=np.array([s.visits for s in states], dtype=np.int64),
        changes=np.array([s.changes for s in states], dtype=np.int64),
        next_fetch_at=np.array([s.next_fetch_at for s in states], dtype=np.float64),
        discovered_round=np.array([s.discovered_round for s in states], dtype=np.int64),
        was_asked=np.array([s.was_asked for s in states], dtype=np.bool_),
    )


def is_due(state: UrlState, as_of: float) -> bool:
    """Return whether this URL may be chosen by a round that plans as of this instant."""
    return state.next_fetch_at <= as_of


def weights(candidates: Candidates, as_of: float, priority: Floats | None = None) -> Floats:
    """Return the weight of each URL, at least LEAST_WEIGHT; twice the weight is chosen twice as often.

    The product of: priority (0..1, plus 0.05), 1 / (1 + depth), 1 + log2(1 + linking domains), the
    smoothed share of visits that saw a change (1 for a URL never visited), and 1 + days overdue / 30,
    so that whatever waits grows without bound. ``priority`` replaces the URLs' own where not NaN.
    """
    own = candidates.priority
    chosen = own if priority is None else np.where(np.isnan(priority), own, priority)
    linked = 1.0 + natural_log(1.0 + candidates.inlink_domains.astype(np.float64)) / _LN2
    visited = candidates.visits > 0
    changing = np.where(visited, (candidates.changes + 1.0) / (candidates.visits + 2.0), 1.0)
    overdue = np.maximum(0.0, as_of - candidates.next_fetch_at)
    score = (chosen + 0.05) / (1.0 + candidates.depth) * linked * changing
    floored: Floats = np.maximum(score, LEAST_WEIGHT) * (1.0 + overdue / AGE_UNIT_SECONDS)
    return floored


def score(state: UrlState, as_of: float) -> float:
    """Return the weight of one URL, exactly as ``weights`` gives it."""
    return float(weights(candidates_of([state]), as_of)[0])


def draw_ranks(url_keys: Keys, weight: Floats, salt: str, round_number: int) -> Floats:
    """Return -ln(U) / weight for each URL; the lower rank is chosen first.

    Taking the k least is weighted sampling without replacement (Efraimidis and Spirakis 2006). U in (0, 1)
    comes from the URL's key, the crawl's salt and the round, so a plan made again is the same plan, each
    round draws anew, and every URL has a positive chance in each.
    """
    seed = int.from_bytes(blake2b(f"{salt}\0{round_number}".encode(), digest_size=8).digest(), "big")
    mixed = mix(mix(url_keys ^ np.uint64(seed)) + np.uint64(seed))
    uniform = ((mixed >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    rank: Floats = -natural_log(uniform) / weight
    return rank


def mix(keys: Keys) -> Keys:
    """Return a bijective scrambling of 64-bit keys (the finaliser of SplitMix64, Steele et al. 2014)."""
    mixed = keys + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def natural_log(values: Floats) -> Floats:
    """Return ln of positive numbers within 1e-15, bit for bit the same on every processor.

    Vector libraries differ in the last bit of log; here only correctly rounded operations are used
    (the series of artanh on the mantissa), because two machines must agree on every rank.
    """
    mantissa, exponent = np.frexp(values)
    low = mantissa < _SQRT_HALF
    mantissa = np.where(low, mantissa * 2.0, mantissa)
    exponent = exponent - low
    ratio = (mantissa - 1.0) / (mantissa + 1.0)
    square = ratio * ratio
    series = np.zeros_like(square)
    for odd in range(23, 1, -2):
        series = (series + 1.0 / odd) * square
    logarithm: Floats = exponent * _LN2 + 2.0 * ratio * (1.0 + series)
    return logarithm


class Cut(NamedTuple):
    """The last (rank, url_key) that is chosen. ``NOTHING`` and ``EVERYTHING`` are the two ends."""

    rank: float
    url_key: int


NOTHING = Cut(-1.0, 0)
EVERYTHING = Cut(float("inf"), 2**64 - 1)


def threshold_for(rank: Floats, url_keys: Keys, round_urls: int) -> Cut:
    """Return the cut at which exactly min(round_urls, rows) of these URLs are chosen.

    Equal ranks are ordered by key. Independent of the order of the rows, so it may be computed from
    partitions put together in any order; rows beyond the ``round_urls`` least of a partition never matter.
    """
    if max(0, round_urls) >= len(rank):
        return EVERYTHING
    if round_urls <= 0:
        return NOTHING
    bound = np.partition(rank, round_urls - 1)[round_urls - 1]
    below = int(np.count_nonzero(rank < bound))
    tied = np.sort(url_keys[rank == bound])
    return Cut(float(bound), int(tied[round_urls - below - 1]))


def within_cut(rank: Floats, url_keys: Keys, cut: Cut) -> Flags:
    """Return for each URL whether it is chosen by this cut."""
    chosen: Flags = (rank < cut.rank) | ((rank == cut.rank) & (url_keys <= np.uint64(cut.url_key)))
    return chosen
