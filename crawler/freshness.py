"""How often a page changes, and how often it is worth a visit."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from crawler.ranks import DAY_SECONDS, Floats, Ints

BINS = 64
LEAST_WEIGHT, GREATEST_WEIGHT = 2.0**-4, 2.0**8
_SLOWEST, _FASTEST = 1.0 / (4_000 * DAY_SECONDS), 1.0 / 60.0


def change_rate(visits: int, changes: int, span_seconds: float, prior_rate: float) -> float:
    """Return the estimated changes a second, above 0, of a page seen ``visits`` times over this span.

    -ln((n - X + 0.5) / (n + 0.5)) x n / t with n comparisons and X changes (Cho and Garcia-Molina 2003:
    a plain count underestimates, because two changes between visits look like one), averaged with the
    prior, which weighs as much as one comparison.
    """
    comparisons = visits - 1
    if comparisons < 1 or span_seconds <= 0:
        return prior_rate
    unchanged = comparisons - min(changes, comparisons)
    a_visit = -math.log((unchanged + 0.5) / (comparisons + 0.5))
    measured = a_visit * comparisons / span_seconds
    return (comparisons * measured + prior_rate) / (comparisons + 1)


def visit_rate(weight: float, rate: float, price_seconds: float) -> float:
    """Return the visits a second at which one visit more is just worth its price; above 0.

    rho = (-D + sqrt(D^2 + 4 mu D / L)) / 2 for a page of weight mu and change rate D: the optimum under
    LambdaCrawl's penalty (Kolobov et al., NeurIPS 2019). Unlike the optimum of plain freshness it gives up
    no page, however fast it changes. The price L is ``solve_multiplier``'s; infinite when that is 0.
    """
    if price_seconds <= 0:
        return math.inf
    return float(_visit_rates(np.float64(weight), np.float64(rate), price_seconds))


def _visit_rates(weight: Floats | np.float64, rate: Floats | np.float64, price_seconds: float) -> Floats:
    # The root written as 2c / (1 + sqrt(1 + 4c / D)) does not cancel where mu / L is small beside D.
    fastest = weight / price_seconds
    visits: Floats = np.asarray(2.0 * fastest / (1.0 + np.sqrt(1.0 + 4.0 * fastest / rate)))
    return visits


def histogram_of(pages: Iterable[tuple[float, float]]) -> Ints:
    """Return the number of pages in each of BINS x BINS cells of (log weight, log change rate).

    Histograms of parts of a crawl add up to that of the whole, in any order.
    """
    columns = np.array(list(pages), dtype=np.float64).reshape(-1, 2)
    weight = _cell(columns[:, 0], LEAST_WEIGHT, GREATEST_WEIGHT)
    rate = _cell(columns[:, 1], _SLOWEST, _FASTEST)
    counts: Ints = np.bincount(weight * BINS + rate, minlength=BINS * BINS).reshape(BINS, BINS)
    return counts


def _cell(values: Floats, least: float, greatest: float) -> Ints:
    position = np.log(np.clip(values, least, greatest) / least) / math.log(greatest / least)
    cells: Ints = np.minimum((position * BINS).astype(np.int64), BINS - 1)
    return cells


def _centres(least: float, greatest: float) -> Floats:
    centres: Floats = least * (greatest / least) ** ((np.arange(BINS) + 0.5) / BINS)
    return centres


def solve_multiplier(
    histogram: Ints, visits_a_second: float, shortest_seconds: float, longest_seconds: float
) -> float:
    """Return the price L at which the pages of this histogram ask for so many visits in all.

    Rates are kept between 1 / longest and 1 / shortest interval. 0.0 if the budget lets every page be
    visited at the shortest; the greatest price that still matters if it does not even pay for the longest.
    """
    weight = _centres(LEAST_WEIGHT, GREATEST_WEIGHT)[:, None]
    rate = _centres(_SLOWEST, _FASTEST)[None, :]

    def asked(price_seconds: float) -> float:
        rates = _visit_rates(weight, rate, price_seconds)
        return float((histogram * np.clip(rates, 1.0 / longest_seconds, 1.0 / shortest_seconds)).sum())

    if histogram.sum() / shortest_seconds <= visits_a_second:
        return 0.0
    low, high = 1.0, 2.0 * GREATEST_WEIGHT * longest_seconds
    for _ in range(64):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if asked(middle) > visits_a_second else (low, middle)
    return high
