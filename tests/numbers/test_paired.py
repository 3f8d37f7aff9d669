import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.numbers.paired import Difference, holm

counts = st.integers(0, 40)
differences = st.builds(Difference, counts, counts, counts, counts).filter(lambda found: found.n > 0)


def test_pairs_are_counted_by_who_solved_them():
    assert Difference.of([1, 1, 0, 0, 0], [1, 0, 1, 1, 0]) == Difference(both=1, gained=2, lost=1, neither=1)
    with pytest.raises(ValueError, match="no problems"):
        Difference.of([], [])
    with pytest.raises(ValueError, match="shorter"):
        Difference.of([True], [])


def test_mcnemars_p_is_that_of_a_fair_coin():
    assert Difference(50, 5, 0, 9).p == 2 / 2**5
    assert Difference(0, 6, 0, 0).p == 2 / 2**6
    assert Difference(7, 1, 3, 7).p == 2 * (1 + 4) / 2**4
    assert Difference(9, 0, 0, 9).p == 1


def test_the_interval_without_discordant_pairs_is_wilsons():
    # 20 of 20: Wilson's interval reaches down to 20 / (20 + 1.96^2) = 0.8389
    value, low, high, n = Difference(20, 0, 0, 0).estimate
    assert (value, n) == (0, 20)
    assert low == pytest.approx(-0.1611, abs=1e-4)
    assert high == pytest.approx(0.1611, abs=1e-4)


def test_a_difference_of_all_problems_is_almost_certain():
    value, low, high, _ = Difference(0, 20, 0, 0).estimate
    assert value == 1
    assert low == pytest.approx(1 - 2**0.5 * 0.1611, abs=1e-4)
    assert high == pytest.approx(1)


@given(differences)
def test_swapping_the_models_turns_the_difference_round(found):
    both, gained, lost, neither = found
    turned = Difference(both, lost, gained, neither)
    value, low, high, _ = found.estimate
    assert turned.estimate[:3] == pytest.approx((-value, -high, -low))
    assert -1 - 1e-9 <= low <= value <= high <= 1 + 1e-9
    assert turned.p == found.p
    assert turned.detectable() == found.detectable()


@given(differences.filter(lambda found: found.n >= 6))
def test_what_is_detectable_is_significant_and_one_pair_less_is_not(found):
    discordant = max(6, found.gained + found.lost)
    net = round((found.detectable() or 0) * found.n)
    gained = (discordant + net) // 2
    assert Difference(0, gained, discordant - gained, 0).p < 0.05
    assert Difference(0, gained - 1, discordant - gained + 1, 0).p >= 0.05


def test_fewer_than_six_problems_can_show_nothing():
    assert Difference(0, 5, 0, 0).detectable() is None
    assert Difference(0, 10, 0, 0).detectable(0.05 / 42) is None  # 2 / 2 ** 10 is not below it
    assert Difference(0, 11, 0, 9).detectable(0.05 / 42) == 11 / 20
    assert Difference(0, 6, 0, 4).detectable() == 6 / 10


def test_holms_adjustment_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.8]) == [1, 1]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), max_size=9))
def test_holm_keeps_the_order_and_never_lowers(values):
    adjusted = holm(values)
    assert all(value <= higher <= 1 for value, higher in zip(values, adjusted, strict=True))
    order = sorted(range(len(values)), key=lambda place: values[place])
    assert [adjusted[place] for place in order] == sorted(adjusted)
