"""Change rates are estimated well and visits are spent where they count."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.freshness import change_rate, histogram_of, solve_multiplier, visit_rate
from tests.benchmarks.bench_freshness import run

DAY = 86_400.0
PRIOR = 1 / (120 * DAY)
HOUR, QUARTER = 3_600.0, 90 * DAY

positive = st.floats(1e-3, 1e3)


def test_without_comparisons_the_prior_stands():
    assert change_rate(0, 0, 0.0, PRIOR) == PRIOR
    assert change_rate(1, 1, 0.0, PRIOR) == PRIOR
    assert change_rate(5, 3, 0.0, PRIOR) == PRIOR


def test_estimate_by_hand():
    # n = 4 comparisons, X = 2, t = 40 days: -ln(2.5 / 4.5) * 4 / 40 d = 0.05878 a day, with weight 4 of 5.
    expected = (4 * 0.0587787 / DAY + PRIOR) / 5
    assert change_rate(5, 2, 40 * DAY, PRIOR) == pytest.approx(expected, rel=1e-5)


def test_estimate_of_poisson_pages_is_close():
    rng = np.random.default_rng(7)
    for every_days in (3.0, 10.0, 40.0):
        changed = rng.random(400) < 1 - np.exp(-10 / every_days)
        rate = change_rate(401, int(changed.sum()), 400 * 10 * DAY, PRIOR)
        assert rate * every_days * DAY == pytest.approx(1.0, rel=0.2)


@given(st.integers(2, 50), st.data())
def test_more_changes_never_mean_a_lower_rate(visits, data):
    changes = data.draw(st.integers(0, visits))
    span = data.draw(st.floats(1.0, 1e8))
    rate = change_rate(visits, changes, span, PRIOR)
    assert 0 < rate <= change_rate(visits, changes + 1, span, PRIOR)


@given(positive, positive, positive)
def test_visit_rate_solves_its_equation(weight, rate, price):
    visits = visit_rate(weight, rate, price)
    assert visits > 0
    assert visits * (visits + rate) == pytest.approx(weight * rate / price, rel=1e-9)
    assert visits <= weight / price * (1 + 1e-9)


@given(positive, positive, positive, st.floats(1.01, 10))
def test_visit_rate_grows_with_worth_and_change_and_falls_with_price(weight, rate, price, factor):
    visits = visit_rate(weight, rate, price)
    assert visit_rate(weight * factor, rate, price) > visits
    assert visit_rate(weight, rate * factor, price) >= visits
    assert visit_rate(weight, rate, price * factor) < visits


def pages_of(count=4_000, seed=3):
    rng = np.random.default_rng(seed)
    return list(
        zip(rng.pareto(1.1, count) + 1, np.exp(rng.normal(np.log(1 / 20), 2, count)) / DAY, strict=True)
    )


def test_histograms_of_parts_add_up():
    pages = pages_of()
    whole = histogram_of(pages)
    assert (histogram_of(pages[:700]) + histogram_of(pages[700:]) == whole).all()
    assert whole.sum() == len(pages)
    assert histogram_of([]).sum() == 0


@pytest.mark.parametrize("every_days", [2.0, 10.0, 30.0, 60.0])
def test_price_spends_the_budget(every_days):
    pages = pages_of()
    budget = len(pages) / (every_days * DAY)
    price = solve_multiplier(histogram_of(pages), budget, HOUR, QUARTER)
    asked = sum(min(max(visit_rate(min(w, 256.0), d, price), 1 / QUARTER), 1 / HOUR) for w, d in pages)
    assert asked == pytest.approx(budget, rel=0.03)


def test_budgets_beyond_both_ends():
    pages = pages_of(200)
    assert solve_multiplier(histogram_of(pages), 200 / HOUR, HOUR, QUARTER) == 0.0
    assert visit_rate(1.0, PRIOR, 0.0) == float("inf")
    price = solve_multiplier(histogram_of(pages), 0.5 * 200 / QUARTER, HOUR, QUARTER)
    assert all(visit_rate(w, d, price) <= 1 / QUARTER for w, d in pages if w < 100)


def test_learnt_rates_buy_more_freshness_than_equal_visits():
    results = run(pages=1_500, days=600)
    ours = results["this product"]
    assert ours["against_uniform"] >= 1.2
    assert ours["freshness"] >= 1.15 * results["multiplicative +20/-40 %"]["freshness"]
    assert ours["visits_a_day"] <= 1_500 / 30
    assert ours["longest_gap_days"] <= 92
