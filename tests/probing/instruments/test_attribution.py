"""Attribution patching where it must be right, and where it is known to be wrong."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.probing.addition.carries import PLACES
from lab.probing.addition.pairs import Pairs, carry_only
from lab.probing.answered import Answered
from lab.probing.components import Component
from lab.probing.contrast import EVERYWHERE
from lab.probing.instruments.attribution import attributions, screen, spearman
from lab.probing.instruments.patching import Patch, margins
from tests.probing.known_adders import llama_adder, native_adder

EQUAL = {"atol": 2e-2, "rtol": 0}


@pytest.fixture(scope="module", params=[native_adder, llama_adder])
def adder(request):
    return request.param()


def test_attributions_are_the_patches_for_what_the_logits_read_directly(adder):
    found = screen(adder, carry_only(4, 1, 8, seed=0), top=4)
    np.testing.assert_allclose(found.mlps.at(layer=1, place="q_k").value, [1, 1], **EQUAL)
    np.testing.assert_allclose(found.exact.at(patch="L1 mlp at q_k").value, [1, 1], **EQUAL)
    for layer, head in (*adder.known.digit_heads, adder.known.decoy, *adder.known.idle_heads):
        np.testing.assert_allclose(found.heads.at(layer=layer, head=head).value, 0, **EQUAL)


def test_one_pair_worked_out_by_hand_and_what_attribution_gets_wrong():
    # 15 + 13 = 28 and 19 + 19 = 38. The margin is m = 2 y - 5. The carry is relu(x) - relu(x - 1), x = 5 + 3 - 8 = 0,
    # and torch's relu has slope 0 at 0: when the carry is turned on from there, each head seems to do nothing, but does
    # everything. When it is turned off from x = 10, each head does nothing, and that is what attribution says.
    found = screen(native_adder(), Pairs([(15, 13)], [(19, 19)], 1), places=("q_k",), top=40)
    exact, attributed = found.exact, found.attributed
    assert sorted(exact.axes["patch"]) == sorted(
        [*(f"L{layer}H{head} at q_k" for layer in (0, 1) for head in range(5)), "L0 mlp at q_k", "L1 mlp at q_k"]
    )
    for name in ("L0H2 at q_k", "L0H3 at q_k"):
        np.testing.assert_allclose(exact.at(patch=name).value, [1, 0], atol=0.01)
        assert np.abs(attributed.at(patch=name).value - exact.at(patch=name).value).max() > 0.2
    for name in ("L0 mlp at q_k", "L1 mlp at q_k"):
        np.testing.assert_allclose(attributed.at(patch=name).value, [1, 1], atol=0.01)


def test_the_screen_ranks_what_matters_first_and_says_how_far_it_can_be_trusted(adder):
    found = screen(adder, carry_only(4, 1, 8, seed=0), top=8)
    assert len(found.exact.axes["patch"]) == 8
    assert {"L0 mlp at q_k", "L1 mlp at q_k"} <= set(found.exact.axes["patch"][:4])
    assert found.agreement.axes == {"carry": ["0 to 1", "1 to 0"]}
    assert (found.agreement.low <= found.agreement.value + 1e-9).all()
    assert (found.agreement.value <= 1).all()
    assert (found.agreement.n == 8).all()


def test_batches_of_any_size_give_the_same_and_places_that_are_missing_are_nan():
    adder = native_adder()
    answered = Answered(adder, carry_only(3, 1, 5, seed=0))
    whole = attributions(answered, PLACES, 64)
    parts = attributions(answered, PLACES, 3)
    corrupt_B, clean_B = answered.corrupt_B.copy(), answered.clean_B.copy()
    np.testing.assert_allclose(parts, whole, atol=1e-3)
    assert whole.shape == (10, 2 * 5 * 8 + 2 * 8)
    margins(answered, [Patch((Component("mlp", 0),), EVERYWHERE)])
    np.testing.assert_allclose(corrupt_B, answered.corrupt_B, atol=1e-3)
    np.testing.assert_allclose(clean_B, answered.clean_B, atol=1e-3)


def test_no_gradient_is_left_on_the_weights():
    adder = native_adder()
    screen(adder, carry_only(3, 1, 2, seed=0), top=1)
    assert all(weight.grad is None for weight in adder.bridge.parameters())


def test_rank_correlation_by_hand():
    assert spearman(np.array([1, 2, 3.0]), np.array([10, 20, 15.0])) == pytest.approx(0.5)
    # ties share their mean rank: 1.5, 1.5, 3 and 1, 2, 3
    assert spearman(np.array([0, 0, 5.0]), np.array([1, 2, 3.0])) == pytest.approx(np.sqrt(3) / 2)
    assert np.isnan(spearman(np.array([1, 1.0]), np.array([1, 2.0])))


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=20, unique=True))
def test_rank_correlation_is_of_order_alone(values):
    values_N = np.array(values, dtype=float)
    assert spearman(values_N, np.exp(values_N / 10)) == pytest.approx(1)
    assert spearman(values_N, -(values_N**3)) == pytest.approx(-1)
