"""Where walking heads should stop, and edits of where they stop, on a toy model."""

import importlib

import pytest
import torch

from lab.config.finetuning import Swap
from lab.config.schema import ModelConfig
from lab.models import swaps

graft_walks = importlib.import_module("experiments.graft-walks.run")

QUESTION, ANSWER = "581 + 417 =", "0998"


@pytest.fixture
def model(toy_model):
    parts = {"coupled": {}, "walk": {"heads": 2}}
    swap = Swap.model_validate({"parts": parts, "format": {"reverse": "none", "pad": "answer", "carry_place": True}})
    model, tokenizer = swaps.load(ModelConfig(name=str(toy_model), dtype="float32", device="cpu"), swap)
    row = graft_walks.row_of(
        model, tokenizer.encode(QUESTION), [*tokenizer.encode(ANSWER, add_special_tokens=False), 0]
    )
    return model, row


def stops(row, name: str) -> list[str]:
    """For each token that writes a digit of the answer, the digits at which it should stop."""
    tokens = ["<eos>", *QUESTION, *ANSWER]
    where_TK = row._asdict()[name][row.first : -1]
    return ["".join(tokens[key] for key in where_K.nonzero().flatten()) for where_K in where_TK]


def test_the_place_that_decides_is_the_nearest_whose_digits_do_not_add_up_to_nine(model):
    _, row = model
    assert stops(row, "right_QK") == ["7", "7", "7", ""]  # 5 + 4 and 8 + 1 are nine, 1 + 7 is not
    assert row.passed_Q[row.first :].tolist() == [2, 1, 0, -1, -1]
    assert stops(row, "lower_QK") == ["", "", "", ""]  # no place is lower than the ones


@pytest.mark.parametrize(("bias", "edit"), [(-1e4, graft_walks.NOWHERE), (0, graft_walks.AS_IS)])
def test_an_edit_does_what_it_says(model, bias, edit):
    """Heads that are very unlikely to stop stop nowhere."""
    model, row = model
    walk = model.parts["walk"]
    torch.nn.init.constant_(walk.bias, bias)
    with torch.inference_mode():
        expected = model(row.ids_T[None]).logits
        torch.nn.init.zeros_(walk.bias)
        walk.watch(graft_walks.editing(edit, row))
        torch.testing.assert_close(model(row.ids_T[None]).logits, expected)
        walk.watch(graft_walks.editing("the right place", row))
        assert not torch.allclose(model(row.ids_T[None]).logits, expected)
