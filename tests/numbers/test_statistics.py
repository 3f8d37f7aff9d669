import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.numbers import statistics
from lab.numbers.statistics import (
    bootstrap_mean,
    bootstrap_ratio,
    mean_share,
    pooled,
    seeds_proportion,
    student_mean,
    wilson,
)


def test_wilson_agrees_with_the_textbook():
    # Newcombe 1998, table I, case 81 of 263: 0.2553 to 0.3662
    estimate = wilson(81, 263)
    assert estimate.low == pytest.approx(0.2553, abs=5e-5)
    assert estimate.high == pytest.approx(0.3662, abs=5e-5)
    assert wilson(0, 10).low == 0
    assert wilson(10, 10).high == 1


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_holds_its_estimate(drawn):
    estimate = wilson(*drawn)
    assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1


def test_wilson_refuses_what_is_no_proportion():
    for successes, n in ((3, 2), (-1, 2), (0, 0)):
        with pytest.raises(ValueError, match="not a proportion"):
            wilson(successes, n)


def test_the_bootstrap_of_a_constant_is_that_constant_and_of_a_spread_holds_the_mean():
    assert bootstrap_mean([2.0] * 9) == (2.0, 2.0, 2.0, 9)
    estimate = bootstrap_mean(list(range(100)))
    assert estimate.low < 49.5 < estimate.high
    assert estimate.high - estimate.low == pytest.approx(2 * 1.96 * 2.89, rel=0.1)
    with pytest.raises(ValueError, match="no values"):
        bootstrap_mean([])


@pytest.mark.parametrize("distinct", [300, 1_000_000])
def test_the_mean_of_a_million_values_takes_less_than_500_mb(distinct):
    values = (np.arange(1_000_000) % distinct).tolist()
    tracemalloc.start()
    estimate = bootstrap_mean(values)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 500e6
    assert estimate.low < estimate.value < estimate.high
    width = 2 * 1.96 * distinct / math.sqrt(12 * 1_000_000)  # the standard error of a uniform mean
    assert estimate.high - estimate.low == pytest.approx(width, rel=0.05)


@pytest.mark.slow
def test_a_ratio_of_many_values_takes_less_than_500_mb():
    values = list(range(1, 40_001))
    tracemalloc.start()
    estimate = bootstrap_ratio(values, [1] * len(values))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 500e6
    assert estimate.low < 20_000.5 < estimate.high


@pytest.mark.parametrize("piece", [1, 7, 10**9])
def test_a_bootstrap_in_pieces_is_that_of_one_piece(monkeypatch, piece):
    values = np.random.default_rng(1).exponential(size=33).tolist()
    squares = [value**2 for value in values]
    mean, ratio = bootstrap_mean(values), bootstrap_ratio(values, squares)
    monkeypatch.setattr(statistics, "_DRAWN", piece * len(values))
    assert (bootstrap_mean(values), bootstrap_ratio(values, squares)) == (mean, ratio)


def test_computed_limits_of_a_skewed_mean_are_those_that_are_drawn(monkeypatch):
    values = (np.random.default_rng(1).exponential(size=1000) ** 2).tolist()
    drawn = bootstrap_mean(values)
    monkeypatch.setattr(statistics, "_MANY", 999)
    computed, half = bootstrap_mean(values), (drawn.high - drawn.low) / 2
    assert computed != drawn
    assert computed[0] == drawn[0]
    assert computed[1:3] == pytest.approx(drawn[1:3], abs=0.05 * half)
    assert computed.high - computed.value > 1.05 * (computed.value - computed.low)  # the skew is not lost


@given(st.lists(st.floats(0, 1000), min_size=1, max_size=1))
def test_one_value_says_nothing_about_the_mean(values):
    assert bootstrap_mean(values) == (values[0], -math.inf, math.inf, 1)
    assert bootstrap_ratio(values, [2.0]) == (values[0] / 2, -math.inf, math.inf, 1)
    assert bootstrap_mean(values).to_json() == {"value": values[0], "low": None, "high": None, "n": 1}


@given(st.lists(st.sampled_from([0, 0.25, 1 / 3, 0.5, 1]), min_size=1, max_size=12))
def test_no_mean_of_shares_is_certain_and_its_interval_stays_between_0_and_1(values):
    share = mean_share(values)
    assert 0 <= share.low < share.high <= 1
    assert share.low <= share.value + 1e-12
    assert share.value <= share.high + 1e-12


def test_shares_have_wilsons_interval_and_one_worse_share_does_not_narrow_it():
    assert mean_share([1.0] * 9) == wilson(9, 9)
    assert mean_share([0.5] * 8) == wilson(4, 8)
    assert mean_share([0.0]) == wilson(0, 1)
    assert mean_share([1.0] * 29 + [0.9]).low < wilson(30, 30).low
    with pytest.raises(ValueError, match="no values"):
        mean_share([])


def test_the_bootstrap_of_a_ratio_draws_pairs():
    # each pair has the ratio 3, and so has any draw
    assert bootstrap_ratio([3.0, 6.0, 30.0], [1.0, 2.0, 10.0]) == (3.0, 3.0, 3.0, 3)
    estimate = bootstrap_ratio([1.0, 1.0, 1.0, 1.0], [1, 0, 0, 1])
    assert (estimate.value, estimate.low, estimate.high) == (2.0, 1.0, float("inf"))
    for above, below in (([1.0], [0.0]), ([], []), ([1.0], [1.0, 2.0])):
        with pytest.raises(ValueError, match="no ratio"):
            bootstrap_ratio(above, below)


def test_the_same_problems_count_once_however_many_seeds_were_asked_them():
    """Five seeds that are right on the same 100 problems say as much about problems as one seed does."""
    alike, apart = seeds_proportion([1.0] * 5, 100), seeds_proportion([1.0] * 5, 100, same_problems=False)
    assert (alike.low, alike.high) == (wilson(100, 100).low, 1)
    assert (apart.low, apart.high) == (wilson(500, 500).low, 1)
    spread = seeds_proportion([0.2, 0.9], 10_000)
    assert (spread.low, spread.high) == (0, 1)  # Student's interval over two seeds is wider
    assert seeds_proportion([0.88], 20).value == 0.88


def test_errors_of_seeds_and_of_the_problems_that_they_share_add_up():
    # Student: 4.303 * 0.1 / sqrt(3) = 0.2484; Wilson of 0.5 and 100: 0.4038 to 0.5962; hypot(0.2484, 0.0962) = 0.2664
    mean = seeds_proportion([0.4, 0.5, 0.6], 100)
    assert (mean.low, mean.high) == pytest.approx((0.5 - 0.2664, 0.5 + 0.2664), abs=1e-3)


@pytest.mark.parametrize("seeds", [3, 5, 10])
def test_nineteen_of_twenty_intervals_over_seeds_that_share_their_problems_contain_the_truth(seeds):
    draw, truth, inside = np.random.default_rng(0), 0.7, 0
    for _ in range(1000):
        hard_N = draw.random(100) > truth  # all or nothing, alike for all seeds
        shares = np.clip(1 - hard_N.mean() + draw.normal(0, 0.046 * seeds**0.5, seeds), 0, 1)
        found = seeds_proportion(shares.tolist(), 100)
        inside += found.low <= truth <= found.high
    assert 0.93 < inside / 1000 < 0.99


def test_the_mean_of_a_few_seeds_worked_out_by_hand():
    # 0.8, 0.9, 1.0: standard deviation 0.1, 4.303 * 0.1 / sqrt(3) = 0.2484, and no accuracy is above 1
    mean = student_mean([0.8, 0.9, 1.0], 0, 1)
    assert mean.value == pytest.approx(0.9)
    assert mean.low == pytest.approx(0.9 - 0.2484, abs=1e-4)
    assert mean.high == 1
    assert student_mean([0.5], 0, 1) == (0.5, 0, 1, 1)
    with pytest.raises(ValueError, match="no values"):
        student_mean([])


def test_shares_of_groups_are_pooled_over_their_problems_and_not_averaged():
    assert pooled([wilson(1, 2), wilson(30, 30)]) == wilson(31, 32)
