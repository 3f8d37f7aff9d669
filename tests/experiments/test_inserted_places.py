from itertools import combinations

import pytest
import torch

from experiments.shared.inserted_places import Insertion, inserted
from lab.config.notation import FormatConfig, TokenizerConfig
from lab.errors import ModelError
from lab.numbers.tasks import TASKS
from lab.text.notation import Notation
from tests.from_scratch import built

NOTATION = Notation(TokenizerConfig(), FormatConfig(reverse="integer"), [TASKS["add_integer"]])
MODELS = {
    "relative": {"relative_keys": {}},
    "rope": {},
    "rope with a slope": {"locality": {"slope": 0.2}},
    "alibi": {"alibi": {}},
    "fire": {"fire": {}},
}


def model(layers: int = 1, **parts: dict):
    """A model with random weights, so large that every key matters."""
    model = built(
        NOTATION.vocabulary, {"coupled_ids": {"largest": 512}, "segments": {}, **parts}, size="0.2M", layers=layers
    )
    for weight in model.parameters():
        weight.data *= 4
    return model


def row_of_equal_digits(digits: int, second: int) -> torch.Tensor:
    """The tokens of 11...1 + 22...2 = 33...3, whose second number has `second` digits."""
    words = ["<begin>", *"1" * digits, "<add_integer>", *"2" * second, "=", *"3" * digits]
    return torch.tensor([[NOTATION.vocabulary.index(word) for word in words]])


@torch.inference_mode()
def logits(model, digits: int, insertion: Insertion | None = None, second: int | None = None) -> torch.Tensor:
    """The logits after each token."""
    ids_1T = row_of_equal_digits(digits, digits if second is None else second)
    if insertion is None:
        return model(ids_1T).logits[0]
    with inserted(model, insertion):
        return model(ids_1T).logits[0]


def in_a_longer_row(digits: int, second: int, places: int) -> list[int]:
    """For each token of a row, its place in a row whose long numbers have more places: the digits of lower halves stay
    where they are in their number, the others stay as far from its upper end."""
    lengths, longer, found, start = [digits, second, digits], [], [0], 0
    for length in lengths:
        grown = length + places * (length == digits)
        found += [start + 1 + place + (grown - length) * (2 * (place + 1) > digits) for place in range(length)]
        start += 1 + grown
        longer.append(grown)
        found.append(start)
    return found[:-1]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("second", [10, 3])
def test_if_all_digits_of_a_number_are_equal_every_token_sees_exactly_what_it_would_see_in_the_longer_row(name, second):
    one = model(**MODELS[name])
    there = in_a_longer_row(10, second, 15)
    longer = logits(one, 25, second=25 if second == 10 else second)[there]
    seen = logits(one, 10, Insertion(15), second)
    assert torch.allclose(seen, longer, atol=2e-4)
    assert (seen - longer).abs().max() < 0.1 * (logits(one, 10, second=second) - longer).abs().max()


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("layers", [1, 2])
def test_without_places_nothing_changes_and_after_the_context_neither(name, layers):
    one = model(layers, **MODELS[name])
    usual = logits(one, 10)
    assert torch.allclose(logits(one, 10, Insertion(0)), usual, atol=1e-4)
    logits(one, 10, Insertion(30))
    assert torch.equal(logits(one, 10), usual)


def test_relative_keys_do_not_tell_new_distances_so_only_the_number_of_digits_counts():
    one = model(relative_keys={})
    assert torch.allclose(logits(one, 10, Insertion(15, farther=False, signs=False)), logits(one, 10, Insertion(15)))
    assert torch.equal(logits(one, 10, Insertion(15, more=False)), logits(one, 10, Insertion(0)))


def test_with_rope_more_digits_farther_digits_and_farther_signs_each_matter():
    one = model()
    parts = [
        Insertion(0),
        Insertion(15, farther=False, signs=False),
        Insertion(15, more=False, signs=False),
        Insertion(15, more=False, farther=False),
        Insertion(15),
    ]
    seen = [logits(one, 10, part)[-1] for part in parts]
    assert all((one - other).abs().max() > 0.01 for one, other in combinations(seen, 2))


def test_models_whose_scores_would_be_others_are_refused():
    with pytest.raises(ModelError, match="places cannot be inserted if ids are learned"):
        logits(model(learned_ids={}), 10, Insertion(3))
    clipped = model()
    clipped.change_parts({"clipped_distances": {"at": 5}})
    with pytest.raises(ModelError, match="without clipped_distances and stick_breaking"):
        logits(clipped, 10, Insertion(3))
