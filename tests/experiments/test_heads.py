"""What scripts do with heads, on adders whose heads are known."""

import numpy as np
import pytest
import torch

from experiments.shared.heads import random_groups, set_leak, told
from experiments.shared.sums import drawn
from lab.errors import ModelError
from lab.probing.components import Component
from lab.probing.instruments.alignment import foreign_digits, queries
from lab.probing.instruments.head_contents import contents
from lab.probing.interventions import take
from tests.probing.known_adders import llama_adder, native_adder, tricase_adder

COLUMN = 2


@pytest.fixture(params=[native_adder, llama_adder])
def adder(request):
    return request.param()


def test_random_groups_are_other_heads_of_the_same_layers(adder):
    group = (Component("head", 0, 1), Component("head", 0, 2), Component("head", 1, 0))
    found = random_groups(adder, group, 5, seed=0)
    assert len(set(found)) == 5
    for one in found:
        assert [component.layer for component in one] == [0, 0, 1]
        assert not set(one) & set(group)
    with pytest.raises(ModelError, match="no heads beside L0 mlp"):
        random_groups(adder, (Component("mlp", 0),), 1, seed=0)


def test_the_digit_follows_the_carry_that_its_head_is_told():
    adder = tricase_adder(5)
    head = Component("head", *adder.known.carry_heads[1])
    seen = contents(adder, [head], [COLUMN], drawn(adder, 4, 0, 200), drawn(adder, 4, 200, 100))
    direction, sums = seen.directions[head, COLUMN], drawn(adder, 4, 500, 100)
    carry, digit = sums.columns.carry[:, COLUMN], sums.columns.sum[:, COLUMN]
    assert (told(adder, sums, COLUMN, head, direction, carry) == digit).all()
    wrong = (digit + np.where(carry == 1, -1, 1)) % 10
    assert (told(adder, sums, COLUMN, head, direction, 1 - carry) == wrong).mean() > 0.95


@torch.no_grad()
def test_a_leak_is_what_it_is_set_to_and_what_is_left_keeps_its_proportions(adder):
    sums = drawn(adder, 5, 0, 24)
    layer, head = adder.known.idle_heads[0]  # attends uniformly
    name = f"blocks.{layer}.attn.hook_pattern"
    foreign_BQT, asked_BQ = foreign_digits(sums), queries(sums) >= 0
    for share in (0.0, 0.7):
        _, found = adder.activations(sums, [name], set_leak(sums, {(layer, head): share}))
        seen_BQT = take(found[name][:, head], queries(sums))
        leaks_BQ = (seen_BQT * foreign_BQT).sum(-1)
        leaking_BQ = asked_BQ & foreign_BQT.any(-1)
        torch.testing.assert_close(leaks_BQ[leaking_BQ], torch.full_like(leaks_BQ[leaking_BQ], share))
        torch.testing.assert_close(seen_BQT.sum(-1)[asked_BQ], torch.ones(int(asked_BQ.sum())))
        others = seen_BQT[0, 0][(seen_BQT[0, 0] > 0) & ~foreign_BQT[0, 0]]
        torch.testing.assert_close(others, others[:1].expand_as(others), rtol=1e-4, atol=1e-6)


@torch.no_grad()
def test_a_head_without_a_leak_has_nothing_to_scale_and_is_left_alone(adder):
    sums = drawn(adder, 3, 0, 24)
    exact = set_leak(sums, dict.fromkeys(adder.known.digit_heads, 0.0))
    assert sums.read(adder.logits(sums, exact)).exact_B.all()
