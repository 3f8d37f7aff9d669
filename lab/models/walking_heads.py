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
