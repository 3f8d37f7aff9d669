"""A learned attention bias towards the digits whose place is written next; it starts at zero.

    Add two numbers: 4321 + 98 = 32          1234 + 89, lowest digit first; the next digit is the hundreds digit
                       ^                     the hundreds digits of the two preceding numbers (89 has none)
                      ^ ^    ^               the neighbours of that place

Each head of each layer learns six numbers that it adds to attention scores: for each of the two preceding numbers, one
for the digit at the place of the next digit, one for the digit one place lower, and one for the digit one place higher.
Other tokens have no bias. Answers are written from their lowest digit up (format.reverse=answer or total), so the place
of the next digit is known before it is written. A number starts at the place of the lowest digit of the two preceding
numbers, and each further digit is one place higher. Places are powers of ten, so 1.5e3 has the places of 1500.
Exponents and the parts of fractions have places of their own.

A pretrained model has heads that align digits in this way, but they no longer find their digits at lengths that the
model did not see (`experiments/heads-that-line-up/run.py`). Coupled positions (Cho et al. 2024, arXiv 2405.20671)
solve this in models from scratch. A bias that starts at zero brings the same idea to a pretrained model without
disturbing what it knows.

Shapes: B rows, Q queries (the last tokens of a row), K keys, T tokens, L layers, H heads; C kinds of pairs, where kind
0 has no bias.
"""

from typing import Any

import torch
from torch import nn

from lab.config.parts import PartConfig, Parts
from lab.errors import ModelError
from lab.parts.part import Act, Inputs, Part, Step
from lab.parts.rows import Rows, Words
from lab.text.places import OPERANDS, RowSpots

NUMBERS, NEIGHBOURS = OPERANDS, 1
"""How many numbers back the bias reaches, and how many places to each side."""


class SamePlaceConfig(PartConfig, kind="same_place"):
    """Every head learns a bias towards those digits of the two preceding numbers that are at the same place as the
    digit that is written next. The biases start at zero, so at first they change nothing. Answers must be written from
    their lowest digit up: format.reverse=total or answer."""

    FROM_SCRATCH = False

    def check(self, run: Any) -> None:
        if "coupled" in run.parts:
            raise ValueError("parts.coupled includes the bias of parts.same_place: leave same_place out")
        if run.format.reverse not in ("total", "answer"):
            what = "parts.same_place needs answers that are written from their lowest digit up"
            raise ValueError(f"{what}: use format.reverse=total, or answer")
        check_one_digit(run, "parts.same_place")

    def build(self, model: Any, others: Parts) -> "SamePlace":
        return SamePlace(self, model.num_hidden_layers, model.num_attention_heads)


def check_one_digit(run: Any, key: str) -> None:
    """Raises ValueError, for the part of the config's `key`, if tokens may have several digits."""
    if run.tokenizer.digits.kind == "k_digit":
        raise ValueError(f"{key} needs one digit a token: use tokenizer.digits.kind=one_digit")


def pairs(spots: RowSpots, neighbours: int) -> torch.Tensor:
    """The kind of each pair of a query and a key, (Q, T), or (B, Q, T) for several rows. Queries are the last tokens of
    a row, and keys are all its tokens. A kind depends on two spots (lab/text/places.py): that of the digit that would
    follow the query, and that of the key.

    Args:
        spots: the spots of the row or of stacked rows. If the digit that would follow a query has no spot, all pairs of
            the query have kind 0.
        neighbours: how many places to each side the bias reaches.
    """
    queries_Q3, keys_T3 = torch.from_numpy(spots.following), torch.from_numpy(spots.own)
    back_QT, what_QT, lower_QT = (queries_Q3[..., None, :] - keys_T3[..., None, :, :]).unbind(-1)
    near_QT = (back_QT >= 1) & (back_QT <= NUMBERS) & (what_QT == 0) & (lower_QT.abs() <= neighbours)
    kinds_QT = 1 + (back_QT - 1) * (2 * neighbours + 1) + neighbours - lower_QT
    return torch.where(near_QT & (keys_T3[..., None, :, 1] > 0), kinds_QT, 0)


class PlaceBias(Part):
    """A part whose heads learn what to add to the scores of pairs of each kind. `same_place` and `coupled` say which
    kinds there are."""

    pairs = biases = True

    def __init__(self, config: PartConfig, layers: int, heads: int, kinds: int) -> None:
        """`kinds`: the number of kinds without kind 0, which has no bias."""
        super().__init__(config)
        self.bias = nn.Parameter(torch.empty(layers, heads, kinds))
        self._reverse = "total"

    def reset(self) -> None:
        nn.init.zeros_(self.bias)

    def read(self, words: Words, reverse: str) -> None:
        if words.several is not None:
            what = f"parts.{self.config.KIND} needs one digit a token, but the model has {words.several!r}"
            raise ModelError(f"{what}: use tokenizer.digits.kind=one_digit")
        self._reverse = reverse

    def table(self) -> torch.Tensor:
        """What each layer and head adds to the score of a pair of each kind, (L, H, C)."""
        return nn.functional.pad(self.bias, (1, 0))


class SamePlace(PlaceBias):
    def __init__(self, config: SamePlaceConfig, layers: int, heads: int) -> None:
        super().__init__(config, layers, heads, NUMBERS * (2 * NEIGHBOURS + 1))

    def inputs(self, rows: Rows) -> dict[str, torch.Tensor]:
        """kinds_BQK: the kind of each pair; see `pairs`."""
        return {"kinds_BQK": pairs(rows.spots(self._reverse, operands=0), NEIGHBOURS)}

    def act(self, inputs: Inputs, step: Step) -> Act:
        table_LHC, kinds_BQK = self.table(), inputs["kinds_BQK"]
        return KindBias(table_LHC, one_hot(kinds_BQK, table_LHC.shape[-1]).to(step.hidden_BQD.dtype))


class KindBias(Act):
    """Adds the bias of each kind of pair to the scores.

    During training, torch keeps the scores of every layer, so large models need a small training.micro_batch_size.
    """

    def __init__(self, table_LHC: torch.Tensor, kinds_BQKC: torch.Tensor) -> None:
        """
        Args:
            table_LHC: the biases of all layers.
            kinds_BQKC: the kind of each pair as a one-hot vector, in the dtype of the scores.
        """
        self.table_LHC, self.kinds_BQKC = table_LHC, kinds_BQKC

    def mask(self, layer: int, mask_BHQK: torch.Tensor) -> torch.Tensor:
        bias_CH = self.table_LHC[layer].T.to(mask_BHQK.dtype)
        # a product with one-hot vectors instead of indexing, because its gradient is a matrix product, too; the
        # gradient of indexing is summed pair by pair
        biased_BHQK = mask_BHQK + (self.kinds_BQKC @ bias_CH).permute(0, 3, 1, 2)
        return biased_BHQK.contiguous()  # fast attention on GPUs needs this order


def one_hot(kinds_BQK: torch.Tensor, kinds: int) -> torch.Tensor:
    """The kind of each pair as a one-hot vector; kinds below 0 count as 0."""
    return nn.functional.one_hot(kinds_BQK.clamp(min=0), kinds)
