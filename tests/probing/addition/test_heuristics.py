"""Rules that neurons follow: found where they are known to be, and not in noise."""

import numpy as np
import pytest

from lab.probing.addition import heuristics as lab
from lab.probing.addition.pairs import operands
from lab.probing.benchmark.running import ADDERS

COLUMN = 2


@pytest.fixture
def digits():
    draw = np.random.default_rng(0)
    a, b, carry = draw.integers(0, 10, 800), draw.integers(0, 10, 800), draw.integers(0, 2, 800)
    return a, b, (a + b + carry) % 10, carry


@pytest.mark.parametrize(
    ("rule", "neuron"),
    [
        ("a in 3-6", lambda a, b, answer, carry: (a >= 3) & (a <= 6)),
        ("b mod 2 = 1", lambda a, b, answer, carry: b % 2),
        ("sum in 10-18", lambda a, b, answer, carry: a + b >= 10),
        ("sum mod 10 = 4", lambda a, b, answer, carry: (a + b) % 10 == 4),
        ("answer in 7-7", lambda a, b, answer, carry: answer == 7),
        ("equal", lambda a, b, answer, carry: a == b),
        ("carry", lambda a, b, answer, carry: carry),
    ],
)
def test_a_neuron_that_follows_a_rule_is_found_through_noise_and_not_by_chance(digits, rule, neuron):
    draw = np.random.default_rng(1)
    activation = 3.0 * neuron(*digits) + draw.normal(0, 0.2, 800)
    named = lab.rules(*digits)
    names, holds = list(named), np.stack(list(named.values()))
    best, explained = lab._best(activation[:, None], holds, 400)
    assert (named[names[best[0]]] == named[rule]).mean() > 0.99  # several names may say the same
    assert explained[0] > 0.8
    _, by_chance = lab._best(activation[:, None], draw.permutation(holds, axis=1), 400)
    assert by_chance[0] < 0.1


def test_shares_are_those_of_a_regression_on_the_rule(digits):
    draw = np.random.default_rng(2)
    activation, holds = draw.normal(size=(800, 2)), np.stack(list(lab.rules(*digits).values()))[[3, 70]]
    found = lab._shares(activation, holds, activation, holds)
    for r, rule in enumerate(holds):
        for n in range(2):
            levels = np.where(rule, activation[rule, n].mean(), activation[~rule, n].mean())
            expected = (
                1
                - np.square(activation[:, n] - levels).sum()
                / np.square(activation[:, n] - activation[:, n].mean()).sum()
            )
            assert found[r, n] == pytest.approx(expected, abs=1e-9)


def test_the_gates_of_an_adder_written_by_hand_are_rules_of_the_sum_and_without_them_it_cannot_add():
    adder = ADDERS["ones first"](0)
    found = lab.heuristics(adder, adder.sums(operands("uniform", 4, 0, 400)), COLUMN, top=12)
    assert found.matched.at(sums="as they are").value > 0
    assert found.matched.at(sums="shuffled").value == 0
    assert {one.family for one in found.neurons if one.explained >= 0.5} <= {"sum", "answer", "carry"}
    digits = found.digits
    assert digits.at(removed="nothing").value == 1
    assert digits.at(removed="neurons whose rule holds").high < 0.8
