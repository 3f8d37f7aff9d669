import importlib
from itertools import combinations
from types import SimpleNamespace

import pytest
import torch

from lab.numbers.additions import addition
from tests.experiments.test_inserted_places import NOTATION, model

script = importlib.import_module("experiments.rope-distances.run")
DISTANCES = script.DISTANCES
HIDDEN = script.HIDDEN
TRAINED = script.TRAINED
attention_of_layers = script.attention_of_layers
changed = script.changed


class Words:
    """The part of a tokenizer that is asked."""

    @staticmethod
    def convert_tokens_to_ids(words):
        return [NOTATION.vocabulary.index(word) for word in words]


def shares(**changes) -> list[list[float]]:
    run = SimpleNamespace(model=changes.pop("model", None) or model(**changes), notation=NOTATION, tokenizer=Words)
    return attention_of_layers(run, addition("uniform", TRAINED, 0, 0))  # type: ignore[arg-type]


@torch.no_grad()
def test_where_all_keys_weigh_the_same_one_more_digit_gets_as_much_as_each_of_the_others():
    one = model()
    for layer in one.model.layers:
        layer.self_attn.q_proj.weight.zero_()
    asked = addition("uniform", TRAINED, 0, 0)
    before, answer = 1 + len(NOTATION.question(asked)), len(NOTATION.answer(asked))
    by_hand = sum(1 / (before + written + 1) for written in range(answer)) / answer
    (layer,) = shares(model=one)
    assert layer == pytest.approx([by_hand] * len(DISTANCES), rel=1e-4)


def test_relative_keys_give_a_digit_the_same_at_any_distance_of_four_and_more_and_rope_does_not():
    (relative,), (rope,) = shares(relative_keys={}), shares()
    for far in (slice(0, 47), slice(54, None)):
        assert relative[far] == pytest.approx([relative[far][0]] * 47, rel=1e-4)
        assert max(rope[far]) > 1.5 * min(rope[far])


@torch.no_grad()
def test_the_distance_of_digits_and_that_of_signs_are_clipped_one_at_a_time():
    one = model()
    words = ["<begin>", *"7" * 14, "<add_integer>", *"5" * 14, "=", *"2" * 14]
    ids_1T, seen = torch.tensor([Words.convert_tokens_to_ids(words)]), {}
    for change in ("as trained", "distance", "distance of digits", "distance of signs", HIDDEN, "as trained again"):
        with changed(one, change):
            seen[change] = one(ids_1T).logits[0]
    assert torch.equal(seen["as trained"], seen["as trained again"])
    for first, second in combinations(list(seen.values())[:5], 2):
        assert (first[-1] - second[-1]).abs().max() > 0.01
    for change in ("distance", "distance of digits", "distance of signs", HIDDEN):
        assert torch.allclose(seen[change][:9], seen["as trained"][:9], atol=1e-4)
