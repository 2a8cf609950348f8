"""Freshness that a fixed budget of visits buys, by recrawl policy, on pages that change at random."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from crawler.freshness import GREATEST_WEIGHT, change_rate, histogram_of, solve_multiplier
from crawler.ranks import DAY_SECONDS
from crawler.recrawl import RecrawlPolicy, importance, interval_seconds, jitter_of, record_visit
from schemas.state import UrlState, UrlStatus


class Web(NamedTuple):
    """Pages that change as Poisson processes; linking domains say what a fresh copy is worth."""

    inlink_domains: np.ndarray
    rate_a_day: np.ndarray

    @property
    def weight(self) -> np.ndarray:
        """Return the worth of each page, in sum 1."""
        worth = np.minimum(1.0 + self.inlink_domains, GREATEST_WEIGHT)
        return worth / worth.sum()


def make_web(pages: int, seed: int = 1) -> Web:
    """Return pages with the Web's power law of links (exponent 2.1, Broder et al. 2000).

    Change rates are log-normal around one in 20 days, from several a day to one in years.
    """
    rng = np.random.default_rng(seed)
    rate = np.exp(rng.normal(np.log(1 / 20), 2.0, pages))
    return Web(np.floor(rng.pareto(1.1, pages)), rate)


class Result(NamedTuple):
    """What a policy reached in the second half of the simulated time."""

    freshness: float
    visits_a_day: float
    longest_gap_days: float


def simulate(
    web: Web, days: int, visits_a_day: float, reschedule: Callable[[int, float, bool], float], seed: int = 2
) -> Result:
    """Return the weighted share of time that copies were fresh. Each day the most overdue are visited.

    ``reschedule(page, day, changed)`` gives the day of the page's next visit.
    """
    rng = np.random.default_rng(seed)
    pages = len(web.rate_a_day)
    due = [(float(day), page) for page, day in enumerate(rng.random(pages) * pages / visits_a_day)]
    heapq.heapify(due)
    last, fresh, gaps = np.zeros(pages), np.zeros(pages), np.zeros(pages)
    from_day, visits, allowance = days / 2, 0, 0.0
    for day in range(days):
        allowance = min(allowance + visits_a_day, 2 * visits_a_day)
        while due and due[0][0] < day + 1 and allowance >= 1:
            wanted, page = heapq.heappop(due)
            at = max(wanted, float(day))
            rate = web.rate_a_day[page]
            change_at = last[page] + rng.exponential(1 / rate)
            if at > from_day:
                fresh[page] += max(0.0, min(change_at, at) - max(last[page], from_day))
                gaps[page] = max(gaps[page], at - last[page])
                visits += 1
            last[page] = at
            allowance -= 1
            heapq.heappush(due, (max(reschedule(page, at, change_at < at), at + 1 / 24), page))
    tail = np.minimum(rng.exponential(1 / web.rate_a_day), days - last)
    fresh += np.maximum(0.0, np.minimum(tail, days - from_day))
    gaps = np.maximum(gaps, days - last)
    share = float((web.weight * fresh).sum() / (days - from_day))
    return Result(round(share, 4), round(visits / (days - from_day), 1), round(float(gaps.max()), 1))


def uniform(interval_days: float) -> Callable[[int, float, bool], float]:
    """Return the rule that visits every page equally often."""
    return lambda page, day, changed: day + interval_days


def multiplicative(pages: int, start_days: float) -> Callable[[int, float, bool], float]:
    """Return the rule that shortens an interval by 40 % after a change and else stretches it by 20 %."""
    interval = np.full(pages, start_days)

    def reschedule(page: int, day: float, changed: bool) -> float:
        interval[page] = min(max(interval[page] * (0.6 if changed else 1.2), 1 / 24), 365.0)
        return float(day + interval[page])

    return reschedule


class Learning:
    """The product's own rule: rates learnt from visits, the price solved anew each month."""

    def __init__(self, web: Web, visits_a_day: float, policy: RecrawlPolicy) -> None:
        self.visits_a_second = visits_a_day / DAY_SECONDS
        self.policy = policy
        self.solved_at = -np.inf
        self.states = [
            UrlState(
                url=f"http://h.example/{page}",
                host_key=1,
                url_key=page,
                status=UrlStatus.FETCHED,
                next_fetch_at=0.0,
                depth=1,
                priority=0.5,
                inlink_domains=int(links),
                discovered_from=None,
                discovered_round=1,
                discovered_at=0.0,
                visits=1,
                first_visit_at=0.0,
                last_visit_at=0.0,
            )
            for page, links in enumerate(web.inlink_domains)
        ]

    def __call__(self, page: int, day: float, changed: bool) -> float:
        if day - self.solved_at > 30:
            self._solve(day)
        state = record_visit(self.states[page], changed, day * DAY_SECONDS)
        self.states[page] = state
        wanted = interval_seconds(state, self.policy) * jitter_of(page, state.visits, self.policy.jitter)
        return day + min(wanted, self.policy.longest_seconds) / DAY_SECONDS

    def _solve(self, day: float) -> None:
        policy = self.policy
        known = histogram_of(
            (
                importance(state),
                change_rate(state.visits, state.changes, (state.last_visit_at or 0.0), policy.prior_rate),
            )
            for state in self.states
        )
        price = solve_multiplier(known, self.visits_a_second, policy.shortest_seconds, policy.longest_seconds)
        self.policy = RecrawlPolicy(recrawl_max_days=policy.recrawl_max_days, multiplier_seconds=price)
        self.solved_at = day


def run(pages: int = 5_000, days: int = 720, budget_days: float = 30.0) -> dict[str, dict[str, float]]:
    """Return freshness, visits a day and the longest gap of each policy under one budget."""
    web = make_web(pages)
    visits_a_day = pages / budget_days
    rules = {
        "uniform": uniform(budget_days),
        "multiplicative +20/-40 %": multiplicative(pages, budget_days),
        "this product": Learning(web, visits_a_day, RecrawlPolicy()),
    }
    results = {name: simulate(web, days, visits_a_day, rule) for name, rule in rules.items()}
    base = results["uniform"].freshness
    return {
        name: {**result._asdict(), "against_uniform": round(result.freshness / base, 3)}
        for name, result in results.items()
    }


if __name__ == "__main__":
    for policy_name, figures in run().items():
        print(f"{policy_name:26}", figures)
