import math

import pytest
import torch

from lab.config.finetuning import Swap
from lab.config.schema import ModelConfig
from lab.models import swaps
from lab.parts.stick_breaking import stick_breaking_weights
from lab.parts.walk import decisive, missed_stops, walk_down
from lab.text.examples import EncodedExample
from lab.text.places import RowSpots, row_spots_downward
from lab.trees.losses import tree_loss
from lab.tune.collation import PrefixTreeCollator


def walked(text: str) -> str:
    """The digits that the last token of a text passes on its way down; the others are written as dots."""
    spots = RowSpots.stacked([row_spots_downward([*"9 8 7"], 1, 2), row_spots_downward([*text], 1, 2)])
    below = walk_down(spots, 2)["below_BQK"][1, 0, : len(text)]
    return "".join(word if seen else "." for word, seen in zip(text, below.tolist(), strict=True))


def test_an_answer_walks_down_the_digits_below_the_one_that_is_written_next():
    assert walked("is 3581 + 2417 =") == "..........2417.."
    assert walked("is 3581 + 2417 = 0") == "...........417...."
    assert walked("is 3581 + 2417 = 059") == ".............7......"
    assert walked("is 3581 + 2417 = 05998") == "......................"


def test_where_the_second_number_has_no_digit_the_walk_passes_the_first():
    assert walked("3581 + 17 =") == "35.....17.."
    assert walked("81 + 2417 =") == ".....2417.."
    assert walked("3581 + 17 = 0") == ".5.....17...."


def test_hundreds_of_rows_do_not_mix():
    row, other = (row_spots_downward([*text], 1, 2) for text in ("1234 + 5 =", "1 + 2345 ="))
    alone, together = (walk_down(RowSpots.stacked(rows), 2)["below_BQK"][0] for rows in ([row], [row, *[other] * 600]))
    assert torch.equal(alone, together)


def test_only_answers_walk():
    assert walked("3581 + 2417") == "..........."
    assert walked("like 123. Add 3581 + 2417") == "." * 25
    assert walked("3581 +") == "......"


def decides(text: str) -> str:
    """Like `walked`, with only the digits whose place decides about the carry."""
    spots = RowSpots.stacked([row_spots_downward([*text], 1, 2)])
    digits = torch.tensor([[int(word) if word.isdigit() else 0 for word in text]])
    seen = decisive(spots, 2, digits)[0, 0].tolist()
    return "".join(word if one else "." for word, one in zip(text, seen, strict=True))


def test_a_place_decides_if_its_digits_do_not_add_up_to_nine():
    assert decides("3581 + 2417 =") == ".......2..7.."
    assert decides("3981 + 17 =") == "3.......7.."  # 9 has no digit below it and passes a carry on, as 8 + 1 does
    assert decides("78 3581 + 2417 = 05") == ".............7....."


# The loss

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
    parts = {"coupled": {}, "walk": {"heads": 2, "loss_weight": 2}}
    swap = Swap.model_validate({"parts": parts, "format": {"reverse": "none", "pad": "answer", "carry_place": True}})
    model, tokenizer = swaps.load(ModelConfig(name=str(toy_model), dtype="float32", device="cpu"), swap)
    texts = (("581 + 417 =", "0998"), ("62 + 37 =", "099"))
    examples = [EncodedExample(tokenizer.encode(prompt), tokenizer.encode(answer)) for prompt, answer in texts]
    inputs = PrefixTreeCollator(model=model)(examples)
    answers, both = tree_loss(model.eval(), inputs).item(), tree_loss(model.train(), inputs).item()
    assert both - answers == pytest.approx(expected(model.eval(), inputs), abs=1e-3)


def expected(model, inputs) -> float:
    """Twice the mean over the two layers, whose weights are seen in a pass of their own."""
    tables, missed = [inputs["part_inputs"]["walk"][name] for name in ("places_BK", "below_BQK", "decides_BQK")], []

    def see(layer, weights):
        assert layer == len(missed)
        missed.append(missed_stops(weights, *tables).item())
        return weights

    model.parts["walk"].watch(see)
    tree_loss(model, inputs)
    model.parts["walk"].watch(None)
    assert len(missed) == 2
    assert min(missed) > 0
    return 2 * sum(missed) / 2
