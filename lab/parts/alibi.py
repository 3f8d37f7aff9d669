"""A bias that falls with the distance, instead of a rotation (ALiBi, Press et al. 2022, arXiv 2108.12409, section 3):
slope x distance is subtracted from the scores, with slopes 2^(-8(h+1)/H) for heads h = 0..H-1. Distances are those of
position ids, which count the tokens of a text unless another part decides them.

Shapes: B rows, Q queries, K keys, H heads.
"""

from typing import Any

import torch

from lab.config.parts import PartConfig, Parts
from lab.parts.nope import remove_rotation
from lab.parts.part import Act, Inputs, Part, Step
from lab.parts.positions import Positions


class AlibiConfig(PartConfig, kind="alibi"):
    """Queries and keys are not rotated; slope times distance is subtracted from the scores instead (Press et al.
    2022)."""

    ROTATES = False

    as_released: bool = False
    """Add slope times distance, as the code published with the Number Cookbook does; the farthest token then gets the
    most attention."""

    def check(self, run: Any) -> None:
        if {*run.parts} & {"coupled", "nope"}:
            raise ValueError("parts.alibi replaces positions: leave parts.coupled and parts.nope out")

    def build(self, model: Any, others: Parts) -> "Alibi":
        return Alibi(self, model.num_attention_heads)


class Alibi(Part):
    pairs = distances = True

    def __init__(self, config: AlibiConfig, heads: int) -> None:
        super().__init__(config)
        self.heads = heads

    def attach(self, model: Any) -> None:
        remove_rotation(model)

    def act(self, inputs: Inputs, step: Step) -> Act:
        assert step.positions is not None
        return Biased(self.bias(step.positions).to(step.hidden_BQD.dtype))

    def bias(self, positions: Positions) -> torch.Tensor:
        """What is added to the scores, (B, H, Q, K)."""
        distances_BQK = positions.distances_BQK
        slopes_H11 = alibi_slopes(self.heads, distances_BQK.device)[:, None, None]
        return (1 if self.config.as_released else -1) * slopes_H11 * distances_BQK[:, None]


class Biased(Act):
    """Adds a bias to the scores of all layers."""

    def __init__(self, bias_BHQK: torch.Tensor) -> None:
        self.bias_BHQK = bias_BHQK

    def shared(self, mask_BHQK: torch.Tensor) -> torch.Tensor:
        return mask_BHQK + self.bias_BHQK


def alibi_slopes(heads: int, device: torch.device) -> torch.Tensor:
    """The slope of each head, (H,)."""
    return torch.exp2(-8 * torch.arange(1, heads + 1, device=device) / heads)
