"""No rotation: queries and keys stay as they are (NoPE, Kazemnejad et al. 2023, arXiv 2305.19466)."""

from typing import Any

import torch
from torch import nn

from lab.config.parts import PartConfig, Parts
from lab.parts.part import Part


class NopeConfig(PartConfig, kind="nope"):
    """Queries and keys are not rotated, so attention does not know where tokens are."""

    ROTATES = False

    def check(self, run: Any) -> None:
        if deciding := [kind for kind, part in run.parts.items() if part.DECIDES]:
            raise ValueError(f"parts.nope ignores position ids: leave parts.{deciding[0]} out")

    def build(self, model: Any, others: Parts) -> "Nope":
        return Nope(self)


class Nope(Part):
    def attach(self, model: Any) -> None:
        remove_rotation(model)


def remove_rotation(model: Any) -> None:
    """Replaces the rotary embedding of a Llama."""
    config = model.config
    model.model.rotary_emb = NoRotation(config.head_dim or config.hidden_size // config.num_attention_heads)


class NoRotation(nn.Module):
    """Replaces Llama's rotary embedding: with cosines 1 and sines 0, queries and keys stay as they are."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def forward(self, x: torch.Tensor, position_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Cosines and sines (B, T, D), in x's dtype."""
        shape = (*position_ids.shape, self.width)
        return x.new_ones(1).expand(shape), x.new_zeros(1).expand(shape)
