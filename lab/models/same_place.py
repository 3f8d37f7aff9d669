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
model did not see (`experiments/smollm2_heads.py`). Coupled positions (Cho et al. 2024, arXiv 2405.20671) solve this in
models from scratch. A bias that starts at zero brings the same idea to a pretrained model without disturbing what it
knows.

Shapes: B rows, Q queries (the last tokens of a row), K keys, T tokens, L layers, H heads; C kinds of pairs, where kind
0 has no bias.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from transformers.models.llama.modeling_llama import LlamaDecoderLayer

from lab.models.walking_heads import Walk
from lab.text.places import OPERANDS, RowSpots

NUMBERS, NEIGHBOURS = OPERANDS, 1
"""How many numbers back the bias reaches, and how many places to each side."""


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


class SamePlaceBias(nn.Module):
    first_slope = 0.01
    """How much each place lowers the scores of far digits before training, if they fade."""

    def __init__(
        self, layers: int, heads: int, neighbours: int = NEIGHBOURS, far: bool = False, fading: bool = False
    ) -> None:
        """
        Args:
            layers: the number of layers of the model.
            heads: the number of heads of each layer.
            neighbours: how many places to each side have a bias of their own.
            far: whether the digits of all other places share one more bias, that of the last kind.
            fading: whether each head also learns a slope, by which the scores of those digits fall with each place.
        """
        super().__init__()
        self.bias = nn.Parameter(torch.empty(layers, heads, NUMBERS * (2 * neighbours + 1) + far))
        self.slopes = nn.Parameter(torch.empty(layers, heads, 1)) if fading else None
        self.reset()

    def reset(self) -> None:
        nn.init.zeros_(self.bias)
        if self.slopes is not None:
            nn.init.constant_(self.slopes, self.first_slope)

    def forward(self) -> torch.Tensor:
        """What each layer and head adds to the score of a pair of each kind, (L, H, C), and, if far digits fade, what
        it adds for each place that they are away, (L, H, C + 1). This is never above zero."""
        bias_LHC = nn.functional.pad(self.bias, (1, 0))
        return bias_LHC if self.slopes is None else torch.cat([bias_LHC, -self.slopes.abs()], -1)


class SamePlaceLayer(LlamaDecoderLayer):
    bounded = True
    """Whether the layer uses `attention_mask` even if `unbounded` is given."""

    def forward(  # type: ignore[override]
        self,
        hidden_states: torch.Tensor,
        attention_mask: torch.Tensor,
        bias_LHC: torch.Tensor,
        one_hot_BQKC: torch.Tensor,
        unbounded: torch.Tensor | None = None,
        walks: Mapping[int, Walk] | None = None,
        **others: Any,
    ) -> torch.Tensor:
        """A Llama layer with the bias of each kind of pair added to the scores.

        Args:
            attention_mask: what is added to the scores of all heads, (B, 1, Q, K).
            bias_LHC: the biases of all layers.
            one_hot_BQKC: the kind of each pair as a one-hot vector; if far digits fade, followed by how many places
                the key is away, or 0 if it is not far.
            unbounded: replaces `attention_mask` in a layer that hides no digits.
            walks: how heads walk down the places, by layer.

        During training, torch keeps the scores of every layer, so large models need a small training.micro_batch_size.
        """
        mask = attention_mask if unbounded is None or self.bounded else unbounded
        if walks and self.self_attn.layer_idx in walks:
            others["walk"] = walks[self.self_attn.layer_idx]
        bias_CH = bias_LHC[self.self_attn.layer_idx].T.to(mask.dtype)
        # a product with one-hot vectors instead of indexing, because its gradient is a matrix product, too; the
        # gradient of indexing is summed pair by pair
        biased = mask + (one_hot_BQKC @ bias_CH).permute(0, 3, 1, 2)
        return super().forward(hidden_states, biased.contiguous(), **others)  # fast attention on GPUs needs this order
