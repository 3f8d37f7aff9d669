"""A bias against far keys: slope x distance is subtracted from the scores, with one slope for all heads or one for
each, given or learned. Heads find a digit by its position id; this bias keeps the attention that leaks to other digits
from growing with the number of digits.

Shapes: B rows, Q queries, K keys, H heads.
"""

from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import nn

from lab.config.parts import PartConfig, Parts
from lab.errors import ModelError
from lab.parts.alibi import Biased
from lab.parts.part import Act, Inputs, Part, Step

Slope = Annotated[float, Field(ge=0)]


class LocalityConfig(PartConfig, kind="locality"):
    """An attention score falls with the distance between position ids. (Ids that wrap around have the distance of the
    shorter way round.) Without it, the more far digits there are, the more attention leaks to them."""

    slope: Slope | list[Slope] | Literal["learned"] = 1.0
    """By how much a score falls for each step. One slope for all heads, or a list with one for each head; "learned" if
    each head learns its own, which starts at 0.01 and is shared by all layers. 1 works for sums; a product by one digit
    needs a head that sees this digit from far away."""

    def build(self, model: Any, others: Parts) -> "Locality":
        heads = model.num_attention_heads
        if isinstance(self.slope, list) and len(self.slope) != heads:
            raise ModelError(f"parts.locality.slope has {len(self.slope)} slopes, and the model has {heads} heads")
        return Locality(self, heads)


class Locality(Part):
    pairs = distances = True
    rate = 10.0
    """A learned slope is the absolute value of its parameter times this factor, because slopes must change more than
    weights in the same number of steps."""
    first_slope = 0.01
    """The value of a learned slope before training."""

    def __init__(self, config: LocalityConfig, heads: int) -> None:
        super().__init__(config)
        self.learned = nn.Parameter(torch.empty(heads)) if config.slope == "learned" else None
        self.reset()

    def reset(self) -> None:
        if self.learned is not None:
            nn.init.constant_(self.learned, self.first_slope / self.rate)

    def slopes(self, device: torch.device) -> torch.Tensor:
        """The slope of each head, or one for all heads; never below zero if learned."""
        if self.learned is not None:
            return self.rate * self.learned.abs().float()
        given = self.config.slope
        return torch.tensor(given if isinstance(given, list) else [given], dtype=torch.float32, device=device)

    def act(self, inputs: Inputs, step: Step) -> Act:
        assert step.positions is not None
        distances_B1QK = step.positions.distances_BQK[:, None]
        bias_BHQK = -self.slopes(distances_B1QK.device)[:, None, None] * distances_B1QK
        return Biased(bias_BHQK.to(step.hidden_BQD.dtype))
