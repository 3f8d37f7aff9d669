"""A window: keys whose position ids are farther away than a limit are hidden, so that nothing leaks to them. What a
layer computes then does not depend on the lengths of numbers."""

from typing import Any

import torch
from pydantic import Field

from lab.config.parts import PartConfig, Parts
from lab.parts.part import Act, Inputs, Part, Step


class WindowConfig(PartConfig, kind="window"):
    """A token sees only tokens whose position ids are near its own. Stick-breaking heads see all tokens."""

    reach: int = Field(default=1, ge=1)
    """How far away the ids may be."""

    def build(self, model: Any, others: Parts) -> "Window":
        return Window(self)


class Window(Part):
    pairs = distances = True

    def act(self, inputs: Inputs, step: Step) -> Act:
        assert step.positions is not None
        return _Near(step.positions.distances_BQK[:, None] > self.config.reach)


class _Near(Act):
    def __init__(self, far_B1QK: torch.Tensor) -> None:
        self.far_B1QK = far_B1QK

    def shared(self, mask_BHQK: torch.Tensor) -> torch.Tensor:
        return mask_BHQK.masked_fill(self.far_B1QK, torch.finfo(mask_BHQK.dtype).min)
