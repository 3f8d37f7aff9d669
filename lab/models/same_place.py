"""A bias of attention towards the digits of the place that is written next, zero at first.

    Add two numbers: 4321 + 98 = 32          reversed: 1234 + 89; the next digit is the third of its number
                       ^    ^     the thirds of the two numbers before (the second number has none)
                      ^ ^  ^ ^    and their neighbours

Each head of each layer learns six numbers: what it adds to the score of a key in the number before or in the one before
that, whose place is one less, the same, or one more. A digit's place is how many digits of its part (before the point,
after it, the exponent) are written up to it. Whatever is no digit of the two numbers has no bias.

That line of heads is what a pretrained model has to learn for itself, and what it loses beyond the lengths it saw
(`experiments/smollm2_heads.py`). The idea is that of position coupling (Cho et al. 2024, arXiv 2405.20671), as a bias
(T5's, Raffel et al. 2020), which disturbs nothing of what a model knows.

Shapes: B rows, Q queries, K keys, L layers, H heads; C kinds of pairs, 0 for those without a bias.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import nn
from transformers.models.llama.modeling_llama import LlamaDecoderLayer

SEPARATORS = ("/", ".", "e")
NUMBERS, NEIGHBOURS = 2, 1
"""How many numbers back, and how many places to both sides, a bias reaches."""
_WIDTH = 2 * NEIGHBOURS + 1
KINDS = 1 + NUMBERS * _WIDTH


class Spot(NamedTuple):
    """Where a digit is: the parts of a number and its digits are counted from 1 up, the numbers of a row as well."""

    number: int
    part: int
    place: int


NOWHERE = Spot(0, 0, 0)


class Spots(NamedTuple):
    """Of every token of a row where it is, NOWHERE if it is no digit, and where the digit after it would be."""

    own: list[Spot]
    following: list[Spot]


def spots(words: Sequence[str]) -> Spots:
    """Of the words of a row, "" for those that are passed over."""
    found, here, inside = Spots([], []), NOWHERE, False
    for word in words:
        if word.isascii() and word.isdigit():
            here = here._replace(place=here.place + 1) if inside else Spot(here.number + 1, 1, 1)
            inside = True
        elif word in SEPARATORS and inside:
            here = here._replace(part=here.part + 1, place=0)
        elif word:
            inside = False
        found.own.append(here if inside and word.isdigit() else NOWHERE)
        found.following.append(here._replace(place=here.place + 1) if inside else Spot(here.number + 1, 1, 1))
    return found


def kinds(following: Sequence[Spot], own: Sequence[Spot]) -> torch.Tensor:
    """Of queries, where what they write would be, and keys, where they are, the kind of every pair, (Q, K)."""
    queries_Q3, keys_K3 = torch.tensor(following).view(-1, 3), torch.tensor(own).view(-1, 3)
    number_QK, part_QK, place_QK = (queries_Q3[:, None] - keys_K3).unbind(-1)
    near_QK = (number_QK >= 1) & (number_QK <= NUMBERS) & (part_QK == 0) & (place_QK.abs() <= NEIGHBOURS)
    kinds_QK = 1 + (number_QK - 1) * _WIDTH + NEIGHBOURS - place_QK
    return torch.where(near_QK & (keys_K3[:, 2] > 0), kinds_QK, 0)


class SamePlaceBias(nn.Module):
    def __init__(self, layers: int, heads: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.empty(layers, heads, KINDS - 1))
        self.reset()

    def reset(self) -> None:
        nn.init.zeros_(self.bias)

    def forward(self) -> torch.Tensor:
        """What layers and heads add to the score of a pair of each kind, (L, H, C)."""
        return nn.functional.pad(self.bias, (1, 0))


class SamePlaceLayer(LlamaDecoderLayer):
    def forward(  # type: ignore[override]
        self,
        hidden_states: torch.Tensor,
        attention_mask: torch.Tensor,
        bias_LHC: torch.Tensor,
        kinds_BQK: torch.Tensor,
        **others: Any,
    ) -> torch.Tensor:
        """attention_mask: what is added to the scores of all heads, (B, 1, Q, K)."""
        bias_CH = bias_LHC[self.self_attn.layer_idx].T.to(attention_mask.dtype)
        return super().forward(hidden_states, attention_mask + bias_CH[kinds_BQK].permute(0, 3, 1, 2), **others)
