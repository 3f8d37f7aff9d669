"""Ablation of any contrast, on an adder whose circuit is known."""

import numpy as np
import pytest
import torch

from lab.errors import TaskError
from lab.probing.addition.pairs import Pairs, carry_only
from lab.probing.components import Component
from lab.probing.contrast import EVERYWHERE
from lab.probing.instruments.ablation import ablate, layouts_of, means_by_layout
from tests.probing.known_adders import native_adder


def test_without_the_carry_heads_a_carry_is_never_written_and_idle_heads_are_not_missed():
    adder, pairs = native_adder(), carry_only(4, 1, 16, seed=0)
    carry = tuple(Component("head", *place) for place in adder.known.carry_heads)
    idle = tuple(Component("head", *place) for place in adder.known.idle_heads)
    found = ablate(adder, pairs, [carry, idle], "mean", "q_k")
    carried, idled = (found.right.at(group="+".join(map(str, group))) for group in (carry, idle))
    assert idled.value.tolist() == [1, 1]
    assert carried.value.min() < 0.3
    np.testing.assert_allclose(found.kept.at(group="+".join(map(str, idle))).value, [1, 1], atol=0.02)


def test_means_are_taken_over_prompts_whose_roles_are_at_the_same_tokens():
    adder = native_adder()
    contrast = Pairs([(14, 13), (52, 31), (158, 231)], [(19, 18), (56, 37), (158, 239)], 1).contrast(adder)
    assert layouts_of(contrast).tolist() == [0] * 6
    point = "blocks.0.hook_resid_pre"
    found = means_by_layout(adder, contrast, [point], 2)[point]
    _, activations = adder.activations(contrast.base, [point])
    assert torch.allclose(found[0, :18], activations[point][:, :18].mean(0), atol=1e-5)


def test_what_cannot_be_ablated_is_refused_in_one_line():
    adder = native_adder()
    for groups, options, message in (
        ([], {}, "nothing to ablate"),
        ([(Component("mlp", 0),)], {"replacement": "zero"}, "^replacement 'zero'"),
        ([(Component("mlp", 0),)], {"place": "the point"}, "no token has this role"),
    ):
        with pytest.raises(TaskError, match=message):
            ablate(adder, carry_only(3, 1, 4, 0), groups, **options)


def test_an_ablation_everywhere_and_at_every_role_of_use_are_the_same():
    adder, pairs = native_adder(), carry_only(3, 1, 8, seed=0)
    groups = [(Component("mlp", 0),)]
    at_query, everywhere = (ablate(adder, pairs, groups, "resample", place) for place in ("q_k", EVERYWHERE))
    np.testing.assert_allclose(at_query.kept.value, everywhere.kept.value, atol=0.02)
