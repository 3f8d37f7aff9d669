"""FIRE: a learned function of the distance is added to the scores (Li et al. 2024, arXiv 2310.04418).

    f(psi(|i - j|) / psi(max(L, i))), with psi(x) = log(c x + 1) and an MLP f of 1 input, 32 hidden units, H outputs

c, L and f are learned and shared by all layers (FIRE-S). The width and initial values are those of the paper's code.

Shapes: B rows, Q queries, K keys, H heads.
"""

import math
from typing import Any

import torch
from torch import nn

from lab.config.parts import PartConfig, Parts
from lab.parts.alibi import Biased
from lab.parts.nope import remove_rotation
from lab.parts.part import Act, Inputs, Part, Step
from lab.parts.positions import Positions


class FireConfig(PartConfig, kind="fire"):
    """Queries and keys are not rotated; a learned function of the distance is added to the scores (Li et al. 2024)."""

    ROTATES = False

    def build(self, model: Any, others: Parts) -> "Fire":
        return Fire(self, model.num_attention_heads)


class Fire(Part):
    pairs = distances = True
    hidden = 32
    initial_c, initial_threshold = 0.1, 512.0
    small = 1e-6
    """Keeps the quotient finite if c becomes 0."""

    def __init__(self, config: FireConfig, heads: int) -> None:
        super().__init__(config)
        self.c = nn.Parameter(torch.empty(()))
        self.threshold_scale = nn.Parameter(torch.empty(()))
        """L divided by its initial value, because the optimizer's steps suit numbers near 1."""
        self.into_mlp, self.out_of_mlp = nn.Linear(1, self.hidden), nn.Linear(self.hidden, heads)
        self.reset()

    def attach(self, model: Any) -> None:
        remove_rotation(model)

    def reset(self) -> None:
        """Draws the weights of the MLP from torch's default distribution. With Llama's standard deviation of 0.02 in
        both layers, the bias would start near zero."""
        nn.init.constant_(self.c, self.initial_c)
        nn.init.constant_(self.threshold_scale, 1.0)
        for layer in (self.into_mlp, self.out_of_mlp):
            bound = 1 / math.sqrt(layer.in_features)
            nn.init.uniform_(layer.weight, -bound, bound)
            nn.init.uniform_(layer.bias, -bound, bound)

    def act(self, inputs: Inputs, step: Step) -> Act:
        assert step.positions is not None
        return Biased(self.bias(step.positions).to(step.hidden_BQD.dtype))

    def bias(self, positions: Positions) -> torch.Tensor:
        """What is added to the scores, (B, H, Q, K)."""
        with torch.autocast(positions.keys_BK.device.type, enabled=False):  # bfloat16 cannot tell 257 from 256
            threshold = self.initial_threshold * self.threshold_scale.abs()
            longest_BQ1 = torch.maximum(positions.queries_BQ, threshold)[:, :, None]
            share_BQK = self._psi(positions.distances_BQK) / (self._psi(longest_BQ1) + self.small)
            return self.out_of_mlp(self.into_mlp(share_BQK[..., None]).relu()).permute(0, 3, 1, 2)

    def _psi(self, x: torch.Tensor) -> torch.Tensor:
        return torch.log1p(self.c.abs() * x)
