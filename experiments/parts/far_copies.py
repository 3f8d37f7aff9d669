"""Training in which each far digit counts as several copies of itself (the logarithm of their number is added to its
score). So the model learns to ignore far digits as if numbers were that many times longer; each head learns how
strongly. In the test, each digit counts once."""

import math
from typing import Any

from pydantic import Field

from lab.config.parts import PartConfig, Parts
from lab.parts.alibi import Biased
from lab.parts.far_digits import check_that_digits_are_known, far_digits
from lab.parts.part import Act, Inputs, Part, Step


class FarCopiesConfig(PartConfig, kind="far_copies"):
    """In training, each digit whose position id is 4 or more away counts as several copies of itself."""

    PRETRAINED = False

    copies: float = Field(default=100, ge=1)
    """How many copies."""

    def check(self, run: Any) -> None:
        check_that_digits_are_known(run, "parts.far_copies")

    def build(self, model: Any, others: Parts) -> "FarCopies":
        return FarCopies(self)


class FarCopies(Part):
    pairs = distances = True

    def act(self, inputs: Inputs, step: Step) -> Act | None:
        if not step.training:
            return None
        assert step.positions is not None
        assert step.visible_BHQK is not None
        far_BQK = far_digits(step.positions, step.visible_BHQK[:, 0])
        return Biased((math.log(self.config.copies) * far_BQK)[:, None].to(step.hidden_BQD.dtype))
