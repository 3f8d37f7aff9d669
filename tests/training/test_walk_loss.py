"""The loss of walking heads, worked out by hand, and on a toy model."""

import math

import pytest
import torch

from lab.config.finetuning import LocalityConfig, Swap, TextPositionsConfig, WalkConfig
from lab.config.notation import FormatConfig
from lab.config.schema import ModelConfig
from lab.models import swaps
from lab.models.stick_breaking import stick_breaking_weights
from lab.text.examples import EncodedExample
from lab.training.collation import PrefixTreeCollator
from lab.training.losses import tree_loss
from lab.training.walk_loss import WalkLoss, missed_stops

PLACES = torch.tensor([[2, 1, 0, 0, 2, 1, 0]])
"""581 + 417 with the plus sign in between; 1 + 7 does not add up to nine, 8 + 1 does, and so does 5 + 4."""
BELOW = torch.tensor([[[False] * 4 + [True] * 3]])
DECIDES = torch.tensor([[[False] * 6 + [True]]])


def test_the_loss_is_that_of_stopping_at_the_place_that_decides():
    weights = torch.tensor([[[[0.0, 0, 0, 0, 0.5, 0.25, 0.125]]]])
    assert missed_stops(weights, PLACES, BELOW, DECIDES).item() == pytest.approx(math.log(8))


def test_of_several_places_that_would_decide_the_highest_is_right():
    weights = torch.tensor([[[[0.0, 0, 0, 0, 0.5, 0.25, 0.25]]]])
    decides = torch.tensor([[[False] * 5 + [True] * 2]])
    assert missed_stops(weights, PLACES, BELOW, decides).item() == pytest.approx(math.log(4))


def test_if_no_place_decides_a_head_should_not_stop():
    weights = torch.tensor([[[[0.0, 0, 0, 0, 0.25, 0.25, 0.25]]]])
    assert missed_stops(weights, PLACES, BELOW, torch.zeros_like(DECIDES)).item() == pytest.approx(math.log(4))


def test_a_head_that_is_sure_of_a_wrong_stop_still_learns():
    scores = torch.tensor([[[[0.0, 0, 0, 0, 20, 20, -20]]]], requires_grad=True)
    missed_stops(stick_breaking_weights(scores.flip(-1), BELOW.flip(-1)).flip(-1), PLACES, BELOW, DECIDES).backward()
    assert scores.grad[0, 0, 0, 4].item() == pytest.approx(1)


def test_queries_that_pass_nothing_do_not_count_and_heads_are_averaged():
    weights = torch.tensor([[[[0.0, 0, 0, 0, 0, 0, 1]], [[0.0, 0, 0, 0, 0, 0, 0.5]]]])
    assert missed_stops(weights, PLACES, BELOW, DECIDES).item() == pytest.approx(math.log(2) / 2)
    assert missed_stops(weights, PLACES, BELOW & False, DECIDES & False).item() == 0


def test_only_in_training_the_loss_is_added_to_that_of_the_answers(toy_model):
    swap = Swap(
        positions=TextPositionsConfig(kind="coupled", locality=LocalityConfig(walk=WalkConfig(heads=2))),
        format=FormatConfig(reverse="none", pad="answer", carry_place=True),
    )
    model, tokenizer = swaps.load(ModelConfig(name=str(toy_model), dtype="float32", device="cpu"), swap)
    texts = (("581 + 417 =", "0998"), ("62 + 37 =", "099"))
    examples = [EncodedExample(tokenizer.encode(prompt), tokenizer.encode(answer)) for prompt, answer in texts]
    inputs, loss = PrefixTreeCollator(model=model)(examples), WalkLoss(2, tree_loss)
    answers = tree_loss(model, inputs)
    assert torch.equal(loss(model.eval(), inputs), answers)
    torch.testing.assert_close(
        loss(model.train(), inputs).item() - answers.item(), expected(model, inputs), atol=1e-3, rtol=0
    )


def expected(model, inputs) -> float:
    """Twice the mean over the two layers, whose weights are seen in a pass of their own."""
    tables, missed = [inputs[name] for name in ("places_BK", "below_BQK", "decides_BQK")], []

    def see(layer, weights):
        assert layer == len(missed)
        missed.append(missed_stops(weights, *tables).item())
        return weights

    model.walk_hook = see
    tree_loss(model, inputs)
    model.walk_hook = None
    assert len(missed) == 2
    assert min(missed) > 0
    return 2 * sum(missed) / 2
