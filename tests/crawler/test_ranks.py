"""Ranks are fair, repeatable and ordered by weight; the cut is exact."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from crawler.ranks import (
    EVERYTHING,
    LEAST_WEIGHT,
    NOTHING,
    candidates_of,
    draw_ranks,
    is_due,
    mix,
    natural_log,
    score,
    threshold_for,
    weights,
    within_cut,
)
from schemas.state import UrlState, UrlStatus

DAY = 86_400.0


def state(**facts):
    row = UrlState(
        url="http://a.example/",
        host_key=1,
        url_key=2,
        status=UrlStatus.UNFETCHED,
        next_fetch_at=0.0,
        depth=1,
        priority=0.5,
        discovered_from=None,
        discovered_round=1,
        discovered_at=0.0,
    )
    return row._replace(**facts)


def test_logarithm_is_right_to_the_last_digits():
    values = np.concatenate([np.random.default_rng(1).random(10_000), [1.0, 2.0**-54, 0.5, 0.7071, 1e300]])
    assert np.allclose(natural_log(values), np.log(values), rtol=1e-14, atol=1e-15)


def test_ranks_are_the_same_on_every_machine():
    keys = np.array([1, 2**63 + 5, 2**64 - 1], dtype=np.uint64)
    ranks = draw_ranks(keys, np.array([1.0, 0.5, 2.0]), "salt", 7)
    assert [rank.hex() for rank in ranks.tolist()] == [
        "0x1.51e55f2f1bcc0p-4",
        "0x1.efc804a5369bcp+0",
        "0x1.c16cf21a974a0p-4",
    ]


def test_mix_is_a_bijection_that_spreads():
    mixed = mix(np.arange(10_000, dtype=np.uint64))
    assert len(set(mixed.tolist())) == 10_000
    assert abs(float(np.mean(mixed >> np.uint64(63))) - 0.5) < 0.02


def test_chance_follows_weight():
    rng = np.random.default_rng(3)
    keys = rng.integers(0, 2**64, 20_000, dtype=np.uint64)
    heavy = np.arange(20_000) < 10_000
    ranks = draw_ranks(keys, np.where(heavy, 3.0, 1.0), "salt", 1)
    # Of two URLs with weights 3 and 1 the first comes first with probability 3/4.
    wins = float(np.mean(ranks[:10_000] < ranks[10_000:]))
    assert abs(wins - 0.75) < 0.02


def test_each_round_and_salt_draws_anew():
    keys = np.random.default_rng(4).integers(0, 2**64, 5_000, dtype=np.uint64)
    one = np.ones(5_000)
    first = draw_ranks(keys, one, "salt", 1)
    for other in (draw_ranks(keys, one, "salt", 2), draw_ranks(keys, one, "pepper", 1)):
        assert abs(float(np.corrcoef(np.exp(-first), np.exp(-other))[0, 1])) < 0.05


def test_least_weight_url_is_chosen_now_and_then():
    keys = np.random.default_rng(5).integers(0, 2**64, 1_000, dtype=np.uint64)
    weight = np.r_[LEAST_WEIGHT, np.ones(999)]
    chosen = 0
    for number in range(2_000):
        rank = draw_ranks(keys, weight, "salt", number)
        cut = threshold_for(rank, keys, 500)
        chosen += int(within_cut(rank[:1], keys[:1], cut)[0])
    # Expected: 1 - exp(-w * ln 2) = 0.07 % of the rounds.
    assert 0 < chosen < 12


def test_weight_rewards_what_it_should():
    plain = score(state(), 0.0)
    assert score(state(priority=0.9), 0.0) > plain
    assert score(state(depth=4), 0.0) < plain
    assert score(state(inlink_domains=7), 0.0) == 4 * plain
    assert score(state(), 30 * DAY) == 2 * plain
    often, never = state(visits=8, changes=8), state(visits=8, changes=0)
    assert plain > score(often, 0.0) > score(never, 0.0) >= LEAST_WEIGHT
    assert score(state(priority=0.0, depth=500), 0.0) == LEAST_WEIGHT


def test_domain_priority_replaces_the_urls_own():
    rows = candidates_of([state(priority=0.1), state(priority=0.1)])
    given_priority = np.array([math.nan, 0.9])
    low, high = weights(rows, 0.0, given_priority).tolist()
    assert (low, high) == (score(state(priority=0.1), 0.0), score(state(priority=0.9), 0.0))


def test_due_means_not_after_as_of():
    assert is_due(state(next_fetch_at=5.0), 5.0)
    assert not is_due(state(next_fetch_at=5.1), 5.0)


@given(
    st.lists(st.tuples(st.sampled_from([0.5, 1.0, 1.5, 2.0]), st.integers(0, 2**64 - 1)), unique=True),
    st.integers(-1, 12),
    st.randoms(use_true_random=False),
)
def test_cut_takes_exactly_the_least(rows, round_urls, random):
    ordered = sorted(rows)
    random.shuffle(rows)
    rank = np.array([rank for rank, _ in rows], dtype=np.float64)
    keys = np.array([key for _, key in rows], dtype=np.uint64)
    cut = threshold_for(rank, keys, round_urls)
    chosen = [row for row, taken in zip(rows, within_cut(rank, keys, cut), strict=True) if taken]
    unique_keys = {key for _, key in rows}
    if len(unique_keys) == len(rows):
        assert sorted(chosen) == ordered[: max(0, round_urls)]
    if round_urls <= 0:
        assert cut == (NOTHING if rows else EVERYTHING)
