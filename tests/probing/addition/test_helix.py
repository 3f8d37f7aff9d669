"""Fits of ten digits: their geometry, and adders whose digits are known to lie on a line."""

import numpy as np
import pytest

from lab.errors import TaskError
from lab.probing.addition import helix as lab
from lab.probing.addition.pairs import operands
from lab.probing.benchmark.running import ADDERS

DIGITS = np.arange(10)


@pytest.mark.parametrize("fit", lab.FITS)
def test_a_fit_is_orthonormal_and_knows_no_constant(fit):
    columns = lab.basis(fit)
    np.testing.assert_allclose(columns.T @ columns, np.eye(columns.shape[1]), atol=1e-9)
    np.testing.assert_allclose(columns.sum(0), 0, atol=1e-9)


def test_digits_on_a_circle_are_a_helix_and_no_polynomial():
    angle = 2 * np.pi * DIGITS / 10
    means = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    shares = {fit: lab._shares(means, [lab.basis(fit)])[0] for fit in lab.FITS}
    assert shares["helix"] == pytest.approx(1)
    assert shares["all means"] == pytest.approx(1)
    assert shares["polynomial"] < 0.98
    assert shares["ramp"] < 0.5


def test_digits_on_circles_of_periods_five_and_two_need_three_periods():
    angle = 2 * np.pi * DIGITS / 5
    means = np.stack([np.cos(angle), np.sin(angle), (-1.0) ** DIGITS], axis=1)
    shares = {fit: lab._shares(means, [lab.basis(fit)])[0] for fit in lab.FITS}
    assert shares["three periods"] == pytest.approx(1)
    assert shares["helix"] < 0.2
    assert shares["sextic"] < 0.8


@pytest.mark.parametrize(("fit", "share"), [("permuted helix", 3 / 9), ("permuted periods", 6 / 9)])
def test_permuted_digits_explain_as_much_of_points_without_order_as_they_have_dimensions(fit, share):
    draw = np.random.default_rng(0)
    means = draw.normal(size=(10, 200))
    bases = [lab.basis(fit, draw.permutation(10)) for _ in range(50)]
    assert lab._shares(means - means.mean(0), bases)[0] == pytest.approx(share, abs=0.03)


@pytest.mark.parametrize("name", ["ones first", "ones first, superposed"])
def test_in_an_adder_whose_digits_lie_on_a_line_the_ramp_turns_them_and_a_permuted_helix_does_not(name):
    adder, pairs = ADDERS[name](3), operands("uniform", 4, 0, 250)
    found = lab.helix(adder, adder.sums(pairs[:150]), adder.sums(pairs[150:]), 2, layers=[0])
    turned, explained = found.turned.at(layer=0), found.explained.at(layer=0)
    for fit in ("ramp", "helix", "polynomial", "three periods", "sextic", "all means"):
        assert explained.at(fit=fit).value == pytest.approx(1, abs=1e-2)
        assert turned.at(fit=fit).value == 1
    assert explained.at(fit="permuted helix").high < 0.95
    assert turned.at(fit="permuted helix").value < 0.6


def test_a_digit_that_does_not_occur_is_named():
    adder = ADDERS["ones first"](0)
    few = adder.sums(operands("uniform", 4, 0, 3))
    with pytest.raises(TaskError, match=r"digit \d does not occur in column 2 of these 3 sums"):
        lab.helix(adder, few, few, 2)


def test_rivals_of_the_three_periods_are_named_by_their_periods_and_have_their_dimensions():
    means = np.random.default_rng(0).normal(size=(10, 50))
    means -= means.mean(0)
    alike = lab.basis("three periods"), lab.basis("periods 10, 5 and 2")
    np.testing.assert_allclose(alike[0] @ alike[0].T, alike[1] @ alike[1].T, atol=1e-9)
    assert lab.basis("periods 10 and 3.3").shape == (10, 5)
    assert lab.basis("periods 5, 2.5 and 2").shape == (10, 6)
    assert len(lab.RIVALS) == 1 + 10 + 10
    components = lab.basis("six components", means_MD=means)
    for fit in lab.RIVALS[1:]:  # no other six dimensions explain more
        one = lab.basis(fit)
        np.testing.assert_allclose(one.T @ one, np.eye(one.shape[1]), atol=1e-9)
        if one.shape[1] <= 6:
            assert lab._shares(means, [one])[0] <= lab._shares(means, [components])[0]
    with pytest.raises(TaskError, match="need the means"):
        lab.basis("six components")
