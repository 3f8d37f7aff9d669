import importlib

import pytest
import torch

from experiments.shared.sums import drawn
from lab.probing.addition.alignment import foreign_digits, queries
from lab.probing.interventions import take
from tests.probing.known_adders import llama_adder, native_adder

script = importlib.import_module("experiments.leak-given.run")
set_leak = script.set_leak


@pytest.fixture(params=[native_adder, llama_adder])
def adder(request):
    return request.param()


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
