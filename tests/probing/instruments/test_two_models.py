"""Two models: the one part that differs is found, and gives the other model's answers."""

import numpy as np
import pytest
import torch

from lab.errors import ModelError
from lab.probing.addition.pairs import carry_only
from lab.probing.instruments.two_models import compare
from tests.probing.known_adders import native_adder, random_model


def test_the_head_that_was_damaged_is_the_one_that_moved_and_that_makes_all_of_the_difference():
    whole, damaged = random_model(key_value_heads=4), random_model(key_value_heads=4)
    with torch.no_grad():  # the head is 8 wide
        damaged.bridge.blocks[2].attn.v.original_component.weight[16:24] = 0
    pairs = carry_only(3, 1, 6, seed=0)
    found = compare(whole, damaged, pairs)
    expected = np.zeros((3, 4))
    expected[2, 2] = 1
    np.testing.assert_allclose(found.moved.value, expected, atol=1e-4)
    given = dict(zip(found.given.axes["component"], found.given.value, strict=True))
    assert given["L2H2"] == pytest.approx(1, abs=1e-3)
    assert max(abs(given[name]) for name in ("L0H0", "L1H2", "L2H1", "L1 mlp")) < 1e-3


def test_a_model_beside_itself_has_not_moved():
    same = compare(native_adder(), native_adder(), carry_only(4, 1, 6, seed=0))
    assert same.moved.value.max() < 1e-4
    assert same.gap.value == pytest.approx(0, abs=1e-4)


def test_models_of_another_shape_are_refused_in_one_line():
    with pytest.raises(ModelError, match=r"have \(2, 5, \d+\) and \(3, 4, 32\) layers, heads and width$"):
        compare(native_adder(), random_model(), carry_only(4, 1, 4, seed=0))
