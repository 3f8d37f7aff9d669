"""A bias that falls with the distance in tokens, instead of a rotation (ALiBi, Press et al. 2022, arXiv 2108.12409,
section 3): slope x distance is subtracted from the scores, with slopes 2^(-8(h+1)/H) for heads h = 0..H-1.

Shapes: B rows, Q queries, K keys, H heads.
"""

from typing import Any

import numpy as np
import torch

from lab.config.parts import PartConfig, Parts
from lab.parts.nope import remove_rotation
from lab.parts.part import Act, Inputs, Part, Step
from lab.parts.rows import Rows


class AlibiConfig(PartConfig, kind="alibi"):
    """Queries and keys are not rotated; slope times distance is subtracted from the scores instead (Press et al.
    2022)."""

    def check(self, run: Any) -> None:
        if {*run.parts} & {"coupled", "nope"}:
            raise ValueError("parts.alibi replaces positions: leave parts.coupled and parts.nope out")

    def build(self, model: Any, others: Parts) -> "Alibi":
        return Alibi(self, model.num_attention_heads)


class Alibi(Part):
    pairs = True

    def __init__(self, config: AlibiConfig, heads: int) -> None:
        super().__init__(config)
        self.heads = heads

    def attach(self, model: Any) -> None:
        remove_rotation(model)

    def inputs(self, rows: Rows) -> dict[str, torch.Tensor]:
        """at_BQ and at_BK: where queries and keys are in the text of their row."""
        padding = [*rows.padding] * (len(rows.wholes) if len(rows.padding) == 1 else 1)
        at = [(np.arange(len(whole)) - first).clip(0) for whole, first in zip(rows.wholes, padding, strict=True)]
        return {"at_BQ": rows.of_queries(at), "at_BK": rows.of_keys(at)}

    def act(self, inputs: Inputs, step: Step) -> Act:
        return _Biased(alibi_bias(self.heads, inputs["at_BQ"], inputs["at_BK"]).to(step.hidden_BQD.dtype))


class _Biased(Act):
    def __init__(self, bias_BHQK: torch.Tensor) -> None:
        self.bias_BHQK = bias_BHQK

    def shared(self, mask_BHQK: torch.Tensor) -> torch.Tensor:
        return torch.where(mask_BHQK == 0, self.bias_BHQK, mask_BHQK)


def alibi_bias(heads: int, at_BQ: torch.Tensor, at_BK: torch.Tensor) -> torch.Tensor:
    """What is added to the scores, (B, H, Q, K)."""
    slopes_H11 = alibi_slopes(heads, at_BQ.device)[:, None, None]
    return -slopes_H11 * (at_BQ[:, :, None] - at_BK[:, None]).abs()[:, None]


def alibi_slopes(heads: int, device: torch.device) -> torch.Tensor:
    """The slope of each head, (H,)."""
    return torch.exp2(-8 * torch.arange(1, heads + 1, device=device) / heads)
