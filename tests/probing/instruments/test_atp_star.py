"""AtP* where plain attribution is right, and where it is blind."""

import numpy as np
import pytest
import torch

from lab.probing.addition.pairs import carry_only
from lab.probing.answered import Answered, Runs
from lab.probing.components import Component
from lab.probing.instruments.atp_star import _cutting, _pattern, atp_star, strongest
from tests.probing.known_adders import llama_adder, native_adder, tricase_adder

PAIRS = carry_only(4, 1, 6, seed=0)


@pytest.mark.parametrize("make", [native_adder, lambda: llama_adder(key_value_heads=1), tricase_adder])
def test_what_the_logits_read_is_found_and_idle_parts_are_not(make):
    adder = make()
    heads, mlps = atp_star(adder, PAIRS)
    assert list(heads.axes) == ["carry", "layer", "head", "input"]
    np.testing.assert_allclose(mlps.at(layer=1).value, [1, 1], atol=0.02)
    found = strongest(heads, mlps)
    for layer, head in (adder.known.decoy, *adder.known.idle_heads):
        assert found[Component("head", layer, head)] == pytest.approx(0, abs=1e-3)


def test_keys_that_turn_sure_attention_are_seen_although_the_softmax_has_no_slope():
    # 99 + 1 and 89 + 1: whether column 1 is a nine decides where the head of carries looks
    adder = tricase_adder()
    answered = Answered(adder, carry_only(4, 1, 24, seed=1))
    points = [f"blocks.1.attn.{end}" for end in ("hook_q", "hook_k", "hook_pattern")]
    with torch.inference_mode():
        runs = Runs(answered, slice(None), points, points)
        moved_BHTT = _pattern(runs, 1, "k")
    head = adder.known.carry_heads[1][1]
    assert moved_BHTT[:, head].abs().max() == pytest.approx(1, abs=1e-3)
    slope = runs.slopes(points).gradients["blocks.1.attn.hook_k"]
    assert slope[:, :, head].abs().max() < 1e-3


def test_a_cut_leaves_no_path_through_its_layer_and_all_others():
    adder = native_adder()
    names = ["blocks.0.hook_mlp_out", "blocks.1.hook_mlp_out"]
    answered = Answered(adder, PAIRS)
    with torch.inference_mode():
        runs = Runs(answered, slice(None), names, names)
    whole, cut = (runs.slopes(names, hooks=_cutting(layer)).gradients for layer in (None, 1))
    assert whole[names[0]].abs().max() > 0.1
    assert (cut[names[0]] @ adder.known.carry_D).abs().max() == pytest.approx(0, abs=1e-5)
    assert all(weight.grad is None for weight in adder.bridge.parameters())
