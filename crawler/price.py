"""The price of a visit: what keeps the revisits that pages ask for within what the rounds have for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from crawler.freshness import BINS, change_rate, histogram_of, solve_multiplier
from crawler.ranks import Ints
from crawler.recrawl import IN_GOOD_ORDER, RecrawlPolicy, importance
from schemas.state import UrlState

LEAST_SHARE = 0.3
REMEMBERED_ROUNDS = 8


class Means(NamedTuple):
    """What rounds can spend on revisits.

    ``first_asked`` are the URLs of the last round that were asked for the first time, ``interval_seconds`` is the
    mean time from the start of a round to that of the next, None where there is none yet.
    """

    round_urls: int
    first_asked: int
    interval_seconds: float | None

    @property
    def visits_a_second(self) -> float:
        """Return the revisits a second there is room for: what new URLs leave, at least LEAST_SHARE of all."""
        room = max(LEAST_SHARE * self.round_urls, self.round_urls - self.first_asked)
        return room / self.interval_seconds if self.interval_seconds else float("inf")


def price_of(cells: Mapping[str, int], means: Means, policy: RecrawlPolicy) -> float:
    """Return the multiplier in seconds at which the pages counted in ``cells`` ask for no more than there is.

    Never below the policy's own price: a crawl with room to spare does not visit its pages more often for it.
    """
    budget = means.visits_a_second
    if budget == float("inf") or not cells:
        return policy.price_seconds
    solved = solve_multiplier(_histogram(cells), budget, policy.shortest_seconds, policy.longest_seconds)
    return max(policy.price_seconds, solved)


def change_of_cells(
    before: Iterable[UrlState], after: Iterable[UrlState], policy: RecrawlPolicy
) -> Counter[str]:
    """Return what to add to the counts of ``price_of`` when these rows replace those; cells without change absent.

    Counted are pages in good order, by their worth and the rate at which they change. A cell is named by its row
    and column in the histogram. Changes of many parts add up, in any order.
    """
    change = histogram_of(_priced(after, policy)) - histogram_of(_priced(before, policy))
    rows, columns = np.nonzero(change)
    return Counter(
        {f"{row}.{column}": int(change[row, column]) for row, column in zip(rows, columns, strict=True)}
    )


def _priced(states: Iterable[UrlState], policy: RecrawlPolicy) -> list[tuple[float, float]]:
    pages = []
    for state in states:
        if state.status in IN_GOOD_ORDER:
            span_seconds = (state.last_visit_at or 0.0) - (state.first_visit_at or 0.0)
            rate = change_rate(state.visits, state.changes, span_seconds, policy.prior_rate)
            pages.append((importance(state), rate))
    return pages


def _histogram(cells: Mapping[str, int]) -> Ints:
    counts: Ints = np.zeros((BINS, BINS), dtype=np.int64)
    for name, pages in cells.items():
        row, _, column = name.partition(".")
        counts[int(row), int(column)] = max(pages, 0)
    return counts


def mean_interval(earlier_seconds: float | None, gap_seconds: float, rounds: int) -> float:
    """Return the mean time between the starts of rounds, after one more gap; late gaps count for more.

    ``rounds`` is how many gaps there were before, of which some REMEMBERED_ROUNDS weigh in.
    """
    gap_seconds = max(0.0, gap_seconds)
    if earlier_seconds is None:
        return gap_seconds
    return earlier_seconds + (gap_seconds - earlier_seconds) / (min(rounds, REMEMBERED_ROUNDS - 1) + 1)
