"""Heads of a pretrained model that walk down the places of a question's numbers, to find where a carry comes from.

    3 5 8 1 + 2 4 1 7 = 0 5     3581 + 2417; the next digit is the hundreds digit
      5 8 1     4 1 7           it needs the digits of its own place, and the carry into it: 8 + 1 is nine and passes a
          1         7           carry on, so the tens do not decide it, but the ones do: 1 + 7 makes no carry

If the highest digit comes first, a carry has not been computed when it is needed. It is decided by the nearest lower
place whose digits do not add up to nine, which may be any number of places away. A walking head stops at places with a
probability that depends on its scores (`stick_breaking.Downward`), and adds what it found there to what it finds with
its usual softmax. It walks in answers alone; what it adds to the score of every place starts at zero.

Shapes: B rows, Q queries, K keys, H heads, G key-value heads, D width of a head, N walking heads of a layer, L layers.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from pydantic import Field
from torch import nn

from lab.config.parts import LayerRange, PartConfig, Parts
from lab.errors import ModelError
from lab.parts.part import Act, Inputs, Part, Step, layers_of
from lab.parts.rows import Rows
from lab.parts.stick_breaking import Downward
from lab.text.places import VALUE, RowSpots

WalkHook: TypeAlias = Callable[[int, torch.Tensor], torch.Tensor]
"""Gets the number of a layer and the weights of its walking heads, (B, N, Q, K): the probability of stopping at each
key. Returns the weights to use."""


class WalkConfig(PartConfig, kind="walk"):
    """Heads that look for a carry by walking down the places of the question's numbers. Needs parts.coupled, and
    numbers written as people write them (format.reverse=none)."""

    FROM_SCRATCH = False

    heads: int = Field(ge=1)
    """How many heads of each layer walk (the last ones)."""
    layers: LayerRange | None = None
    """The first and the last layer with such heads; all layers if not given."""
    loss_weight: float = Field(default=0, ge=0)
    """Weight of a loss that tells the heads where to stop; 0 for no such loss. It is the negative logarithm of the
    probability that a head stops at the place that decides about the carry: the mean over heads, the sum over digits.
    """

    def check(self, run: Any) -> None:
        if "coupled" not in run.parts:
            raise ValueError("parts.walk needs parts.coupled, which tells the places of digits")
        if run.format.reverse != "none":
            raise ValueError("parts.walk needs format.reverse=none: the lowest digits come first")

    def build(self, model: Any, others: Parts) -> "Walk":
        if self.heads > model.num_attention_heads:
            raise ModelError(f"parts.walk.heads={self.heads}: each layer of the model has {model.num_attention_heads}")
        operands = others["coupled"].operands  # type: ignore[attr-defined]
        return Walk(self, layers_of(model, "parts.walk.layers", self.layers), operands)


class Walk(Part):
    """What each walking head of each layer adds to its scores, (L, N), and how it walks."""

    biases = beyond_scores = True

    def __init__(self, config: WalkConfig, layers: range, operands: int) -> None:
        """
        Args:
            config: the section of the config.
            layers: the layers with walking heads.
            operands: how many numbers come before an answer.
        """
        super().__init__(config)
        self.layers, self.operands = layers, operands
        self.bias = nn.Parameter(torch.empty(len(layers), config.heads))
        self.hook: WalkHook | None = None
        """Gets the weights of the walking heads of each layer in a forward pass, and may replace them."""

    def reset(self) -> None:
        nn.init.zeros_(self.bias)

    def watch(self, hook: WalkHook | None) -> None:
        """Sets the hook; None removes it."""
        self.hook = hook

    def inputs(self, rows: Rows) -> dict[str, torch.Tensor]:
        """The output of `walk_down`, and for training decides_BQK (see `decisive`)."""
        spots = rows.spots("none", self.operands)
        given = walk_down(spots, self.operands)
        if rows.supervised and self.config.loss_weight:
            digits_BK = rows.of_keys([rows.words.digits(whole) for whole in rows.wholes])
            given["decides_BQK"] = decisive(spots, self.operands, digits_BK)
        return given

    def act(self, inputs: Inputs, step: Step) -> Act:
        return _Walking(self, inputs, step.training)


class _Walking(Act):
    def __init__(self, part: Walk, inputs: Inputs, training: bool) -> None:
        self.part, self.inputs, self.training = part, inputs, training
        self.downward = Downward.through(inputs["places_BK"], inputs["below_BQK"])
        self.missed: list[torch.Tensor] = []

    def found(
        self,
        layer: int,
        out_BQHD: torch.Tensor,
        query_BHQD: torch.Tensor,
        key_BGKD: torch.Tensor,
        value_BGKD: torch.Tensor,
        scale: float,
    ) -> torch.Tensor:
        if layer not in self.part.layers:
            return out_BQHD
        bias_N, heads = self.part.bias[self.part.layers.index(layer)], query_BHQD.shape[1]
        usual = heads - len(bias_N)
        groups = torch.arange(usual, heads, device=query_BHQD.device) * key_BGKD.shape[1] // heads
        key_BNKD, value_BNKD = (states.index_select(1, groups) for states in (key_BGKD, value_BGKD))
        scores_BNQK = query_BHQD[:, usual:] * scale @ key_BNKD.transpose(-1, -2) + bias_N[:, None, None]
        weights_BNQK = self.downward.weights(scores_BNQK, torch.ones_like(scores_BNQK, dtype=torch.bool))
        if self.part.hook is not None:
            weights_BNQK = self.part.hook(layer, weights_BNQK)
        if self.training and "decides_BQK" in self.inputs:
            self.missed.append(missed_stops(weights_BNQK, **self.inputs))
        found_BQND = (weights_BNQK.to(value_BNKD.dtype) @ value_BNKD).transpose(1, 2)
        return torch.cat([out_BQHD[:, :, :usual], out_BQHD[:, :, usual:] + found_BQND], 2)

    def loss(self) -> torch.Tensor | None:
        return self.part.config.loss_weight * torch.stack(self.missed).mean() if self.missed else None


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


_SMALLEST = torch.finfo(torch.float32).tiny
"""The smallest probability whose logarithm is taken. Below it, a head that is sure of a wrong stop learns nothing."""


def missed_stops(
    weights_BNQK: torch.Tensor, places_BK: torch.Tensor, below_BQK: torch.Tensor, decides_BQK: torch.Tensor
) -> torch.Tensor:
    """The loss of the walking heads of one layer.

    Args:
        weights_BNQK: the probability that each head stops at each key.
        places_BK: the places of keys.
        below_BQK: the keys that a query passes; queries without any do not count.
        decides_BQK: those among them at which it may stop; see `right_stops`.
    """
    stopped_BNQ = (weights_BNQK * right_stops(places_BK, decides_BQK)[:, None]).sum(-1)
    chances_BNQ = torch.where(decides_BQK.any(-1)[:, None], stopped_BNQ, 1 - weights_BNQK.sum(-1))
    missed_BNQ = -chances_BNQ.clamp(min=_SMALLEST).log() * below_BQK.any(-1)[:, None]
    return missed_BNQ.mean(1).sum()


def right_stops(places_BK: torch.Tensor, decides_BQK: torch.Tensor) -> torch.Tensor:
    """Where a query should stop, (B, Q, K): at the key that decides, and at the highest place if several do."""
    lowest = torch.iinfo(places_BK.dtype).min
    places_BQK = torch.where(decides_BQK, places_BK[:, None], lowest)
    return decides_BQK & (places_BQK == places_BQK.amax(-1, keepdim=True))
