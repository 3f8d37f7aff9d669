"""Waves over numbers: spectra that are known, and what their removal does to adders."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lab.config.notation import FormatConfig, TokenizerConfig
from lab.errors import ModelError, TaskError
from lab.numbers.tasks import TASKS
from lab.probing.bridge import Subject, bridge
from lab.probing.instruments import fourier as lab
from lab.probing.pairs import operands
from lab.probing.positions import NotatedSums
from lab.text.notation import Notation
from lab.text.scratch_tokenizer import build_tokenizer
from tests.from_scratch import built
from tests.probing.known_adders import llama_adder, native_adder


def untrained(tokenizer: TokenizerConfig, reverse: str = "none") -> Subject:
    notation = Notation(tokenizer, FormatConfig(reverse=reverse), [TASKS["add_integer"]])  # type: ignore[arg-type]
    model = built(notation.vocabulary, size="0.2M")
    return bridge("untrained", model, NotatedSums(notation, build_tokenizer(notation.vocabulary)))


def test_ten_digits_carry_five_periods():
    np.testing.assert_allclose(lab.periods(10), [10, 5, 10 / 3, 2.5, 2])
    with pytest.raises(TaskError, match=r"^period 100: 10 numbers carry waves of periods 10, 5, 3.33, 2.5, 2, \.\.\.$"):
        lab.waves(10, 100)
    assert lab.waves(100, 100).shape == (100, 2)
    assert lab.waves(10, 2).shape == (10, 1)


@given(st.sampled_from([10, 100]), st.data())
def test_a_wave_has_all_its_power_at_its_period(numbers, data):
    period = data.draw(st.sampled_from(lab.periods(numbers)))
    waves_MX = lab.waves(numbers, period)
    np.testing.assert_allclose(waves_MX.T @ waves_MX, np.eye(waves_MX.shape[1]), atol=1e-9)
    power_F = lab.spectrum(waves_MX + 3.0)
    assert power_F[lab.periods(numbers).index(period)] == pytest.approx(1)
    assert power_F.sum() == pytest.approx(1)


def test_parity_is_a_wave_of_period_two_and_vectors_that_do_not_vary_have_none():
    assert lab.spectrum(np.array([[0.0], [1.0]] * 5)).tolist() == pytest.approx([0, 0, 0, 0, 1])
    assert lab.spectrum(np.ones((10, 3))).tolist() == [0] * 5


def test_removing_every_period_leaves_the_mean():
    vectors_MD = np.random.default_rng(0).normal(size=(10, 4))
    left_MD = vectors_MD.copy()
    for period in lab.periods(10):
        waves_MX = lab.waves(10, period)
        left_MD -= waves_MX @ (waves_MX.T @ left_MD)
    np.testing.assert_allclose(left_MD, np.broadcast_to(vectors_MD.mean(0), left_MD.shape), atol=1e-9)


def test_a_wave_beside_a_ramp_is_what_is_left_without_the_ramp():
    numbers_M = np.arange(10.0)
    vectors_MD = np.stack([numbers_M, (-1.0) ** numbers_M], axis=1)
    left_F = lab.spectrum(lab._without_ramp(vectors_MD))
    assert left_F[-1] > 0.9 > lab.spectrum(vectors_MD)[-1] + 0.5


@pytest.mark.parametrize("adder", [native_adder(), llama_adder()])
def test_digits_on_a_line_have_the_spectrum_of_a_ramp(adder):
    # in 0..9, the wave of frequency f has power 1 / sin(pi f / 10)^2, and the one of period 2 half of that
    ramp_F = 1 / np.sin(np.pi * np.arange(1, 6) / 10) ** 2 * [1, 1, 1, 1, 0.5]
    found = lab.embedding_power(adder)
    np.testing.assert_allclose(found.at(order="as numbers").value, ramp_F / ramp_F.sum(), atol=1e-3)
    # permuted, power is spread evenly: two ninths for each period, and one ninth for period 2
    np.testing.assert_allclose(found.at(order="permuted").value, [2 / 9] * 4 + [1 / 9], atol=0.04)
    # ten random vectors have the same, and a ramp, although it is no wave, has 63 % at the longest period
    np.testing.assert_allclose(found.at(order="random vectors").value, [2 / 9] * 4 + [1 / 9], atol=0.04)
    np.testing.assert_allclose(found.at(order="a ramp").value, ramp_F / ramp_F.sum())
    assert found.at(order="a ramp", period=10).value == pytest.approx(0.63, abs=0.005)
    assert found.at(order="without a ramp").value.tolist() == [0] * 5
    streams = lab.residual_power(adder, adder.sums(operands("uniform", 3, 0, 300)), layers=[0], sites=["pre"])
    at_start = streams.at(layer=0, site="pre", order="as numbers")
    np.testing.assert_allclose(at_start.value, ramp_F / ramp_F.sum(), atol=1e-3)
    np.testing.assert_allclose([at_start.low, at_start.high], [at_start.value] * 2, atol=1e-3)


def test_an_adder_that_counts_on_a_line_needs_all_periods():
    adder = native_adder()
    found = lab.remove_periods(adder, adder.sums(operands("uniform", 3, 0, 100)), [10, 2])
    assert found.exact.at(removed="nothing").value.tolist() == [1, 1]
    assert (found.exact.at(removed="period").value < 0.1).all()
    assert (found.exact.at(removed="random patterns").value < 0.2).all()
    assert found.digits.at(removed="nothing").axes["column"] == [0, 1, 2, 3]


def test_what_was_removed_is_there_again_afterwards():
    adder = native_adder()
    sums = adder.sums(operands("uniform", 3, 0, 50))
    with torch.inference_mode():
        before_BTV = adder.logits(sums)
        lab.remove_periods(adder, sums, [5])
        assert torch.equal(adder.logits(sums), before_BTV)


@pytest.mark.parametrize(
    ("tokenizer", "reverse", "token", "value"),
    [
        (TokenizerConfig(digits=1), "none", "7", 7),
        (TokenizerConfig(digits=2), "none", "07", 7),
        (TokenizerConfig(digits=3), "none", "120", 120),
        (TokenizerConfig(kind="left", digits=3), "none", "012", 12),
        (TokenizerConfig(digits=2), "each", "70", 7),  # reversed: its ones digit comes first
    ],
)
def test_number_tokens_are_found_for_groups_of_any_length(tokenizer, reverse, token, value):
    subject = untrained(tokenizer, reverse)
    ids = lab.number_tokens(subject)
    assert len(ids) == 10**tokenizer.digits
    notation = Notation(tokenizer, FormatConfig(reverse=reverse), [TASKS["add_integer"]])
    assert notation.vocabulary[ids[value]] == token


def test_two_digit_tokens_carry_period_100_and_removal_leaves_other_tokens_alone():
    subject = untrained(TokenizerConfig(digits=2))
    power = lab.embedding_power(subject)
    assert power.axes["period"][:2] == [100, 50]
    null = power.at(order="permuted")
    assert (power.at(order="as numbers").value < 3 * null.high).all()
    sums = subject.sums([(1234, 5607), (123, 56)])
    # the front group of 123 is one digit, which is no number token
    numbers_BT = lab._numbers_at_operands(sums, lab.number_tokens(subject))
    assert [row[row >= 0].tolist() for row in numbers_BT] == [[12, 34, 56, 7], [23, 56]]
    assert lab.remove_periods(subject, sums, [100, 2.5]).exact.value.shape == (3, 2)


def test_tokens_that_are_not_cut_evenly_and_means_without_samples_are_refused_in_one_line():
    with pytest.raises(ModelError, match=r"^untrained: (digits are not written in groups|some numbers of \d digits)"):
        lab.number_tokens(untrained(TokenizerConfig(kind="random", digits=3)))
    adder = native_adder()
    with pytest.raises(TaskError, match=r"^number 3 is the token of no operand in these 1 sums; all 10 should occur$"):
        lab.residual_power(adder, adder.sums([(12098, 45678)]))
