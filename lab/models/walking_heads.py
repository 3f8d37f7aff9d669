"""Heads of a pretrained model that walk down the places of a question's numbers, to find where a carry comes from.

    3 5 8 1 + 2 4 1 7 = 0 5     3581 + 2417; the next digit is the hundreds digit
      5 8 1     4 1 7           it needs the digits of its own place, and the carry into it: 8 + 1 is nine and passes a
          1         7           carry on, so the tens do not decide it, but the ones do: 1 + 7 makes no carry

If the highest digit comes first, a carry has not been computed when it is needed. It is decided by the nearest lower
place whose digits do not add up to nine, which may be any number of places away. A walking head stops at places with a
probability that depends on its scores (`stick_breaking.Downward`), and adds what it found there to what it finds with
its usual softmax. It walks in answers alone; what it adds to the score of every place, `WalkBias`, starts at zero.

Shapes: B rows, Q queries, K keys, H heads, G key-value heads, D width of a head, N walking heads of a layer, L layers.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import torch
from torch import nn

from lab.models.stick_breaking import Downward
from lab.text.places import VALUE, RowSpots

WalkHook: TypeAlias = Callable[[int, torch.Tensor], torch.Tensor]
"""Gets the number of a layer and the weights of its walking heads, (B, N, Q, K): the probability of stopping at each
key. Returns the weights to use."""


class Walk(NamedTuple):
    """How the last heads of a layer walk."""

    downward: Downward
    bias_N: torch.Tensor
    """What each head adds to its scores."""
    layer: int
    hook: WalkHook | None = None

    def added(
        self, out_BQHD: torch.Tensor, query_BHQD: torch.Tensor, key_BGKD: torch.Tensor, value_BGKD: torch.Tensor
    ) -> torch.Tensor:
        """The output of a layer's heads, with what the walking heads found. The queries are scaled."""
        usual, heads = query_BHQD.shape[1] - len(self.bias_N), query_BHQD.shape[1]
        groups = torch.arange(usual, heads, device=query_BHQD.device) * key_BGKD.shape[1] // heads
        key_BNKD, value_BNKD = (states.index_select(1, groups) for states in (key_BGKD, value_BGKD))
        scores_BNQK = query_BHQD[:, usual:] @ key_BNKD.transpose(-1, -2) + self.bias_N[:, None, None]
        weights_BNQK = self.downward.weights(scores_BNQK, torch.ones_like(scores_BNQK, dtype=torch.bool))
        if self.hook is not None:
            weights_BNQK = self.hook(self.layer, weights_BNQK)
        found_BQND = (weights_BNQK.to(value_BNKD.dtype) @ value_BNKD).transpose(1, 2)
        return torch.cat([out_BQHD[:, :, :usual], out_BQHD[:, :, usual:] + found_BQND], 2)


class WalkBias(nn.Module):
    """What each walking head of each layer adds to its scores, (L, N); zero before training."""

    def __init__(self, layers: int, heads: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.empty(layers, heads))
        self.reset()

    def reset(self) -> None:
        nn.init.zeros_(self.bias)

    def forward(self) -> torch.Tensor:
        return self.bias


def walk_down(spots: RowSpots, operands: int) -> dict[str, torch.Tensor]:
    """What walking heads need to know about stacked rows: places_BK, the place of each key, and below_BQK,
    whether a query passes a key. All numbers are written highest digit first.

    In an answer, the walk passes the digits of the two preceding numbers whose place is lower than that of the digit
    that is written next. If both numbers have a digit at a place, only the second one is passed; it has seen the first.
    """
    second_BQK, first_BQK = _passed(spots, operands)
    return {"places_BK": torch.from_numpy(spots.own)[..., 2], "below_BQK": second_BQK | first_BQK}


def decisive(spots: RowSpots, operands: int, digit_BK: torch.Tensor) -> torch.Tensor:
    """Which of the keys that a query passes decide the carry, (B, Q, K): those of places whose digits do not add up to
    nine. `digit_BK`: the digit of each key; any number for other tokens."""
    second_BQK, first_BQK = _passed(spots, operands)
    at_BK = _codes(spots)
    above_BKK = at_BK[:, :, None] - at_BK[:, None] == _MOST_PLACES
    total_BK = digit_BK + (above_BKK * digit_BK[:, None]).sum(-1)
    nine_BQK = (second_BQK & (total_BK == 9)[:, None]) | (first_BQK & (digit_BK == 9)[:, None])
    return (second_BQK | first_BQK) & ~nine_BQK


def _passed(spots: RowSpots, operands: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The keys that each query passes in the number before it, and in the one before that, (B, Q, K) each."""
    next_BQ3, own_BK3 = torch.from_numpy(spots.following), torch.from_numpy(spots.own)
    number_BK, _, place_BK = own_BK3.unbind(-1)
    at_BK, digits_BK = _codes(spots), own_BK3[..., 1] == VALUE
    answered_BK = torch.isin(at_BK + _MOST_PLACES, at_BK[digits_BK])
    back_BQK = next_BQ3[..., :1] - number_BK[:, None]
    of_query_BQ3 = own_BK3.gather(1, torch.from_numpy(spots.at)[..., None].expand(-1, -1, 3))
    written_BQ1 = (of_query_BQ3 != next_BQ3).any(-1, keepdim=True)
    answers_BQ1 = written_BQ1 & (next_BQ3[..., :1] > operands) & (next_BQ3[..., 1:2] == VALUE)
    lower_BQK = digits_BK[:, None] & answers_BQ1 & (place_BK[:, None] < next_BQ3[..., 2:])
    return lower_BQK & (back_BQK == 1), lower_BQK & (back_BQK == 2) & ~answered_BK[:, None]


def _codes(spots: RowSpots) -> torch.Tensor:
    """A code for each digit of stacked rows, (B, K), from its row, its number and its place; other tokens have the code
    of place 0 of number 0. The code of the same place in the next number is larger by _MOST_PLACES."""
    own_BK3 = torch.from_numpy(spots.own)
    rows_B1 = torch.arange(len(own_BK3))[:, None]
    return (rows_B1 * _MOST_NUMBERS + own_BK3[..., 0]) * _MOST_PLACES + own_BK3[..., 2]


_MOST_NUMBERS, _MOST_PLACES = 1 << 16, 1 << 31
"""More than the numbers of a row, and more than the places of a number. Codes of 65,536 rows fit into 64 bits."""
