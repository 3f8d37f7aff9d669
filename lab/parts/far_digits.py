"""A bound on far digits: however many there are, together they weigh no more than a given number of them would.

A row of a longer number has more far digits, and each gets a little attention; this keeps the sum from growing. Signs
(tokens that are not digits, such as "=") are never far: coupled ids give them all the same id, and a model needs to see
them from anywhere.

Shapes: B rows, Q queries, K keys.
"""

from typing import Any

import torch
from pydantic import Field

from lab.config.parts import PartConfig, Parts
from lab.errors import ModelError
from lab.parts.alibi import Biased
from lab.parts.part import Act, Inputs, Part, Step
from lab.parts.positions import Positions
from lab.parts.relative_keys import FAR


class FarDigitsConfig(PartConfig, kind="far_digits"):
    """Limits the total attention weight of all digits whose position ids are 4 or more away. May be added after
    training."""

    PRETRAINED, LATER = False, ("at_most",)

    at_most: int = Field(default=5, ge=1)
    """However many far digits there are, together they weigh no more than this many would."""

    def check(self, run: Any) -> None:
        check_that_digits_are_known(run, "parts.far_digits")

    def build(self, model: Any, others: Parts) -> "FarDigits":
        if not _tell_digits(others):
            raise ModelError("parts.far_digits needs a model with parts.coupled_ids or parts.abacus_ids")
        return FarDigits(self)


def check_that_digits_are_known(run: Any, key: str) -> None:
    """Raises ValueError, for the part of the config's `key`, if ids do not tell digits from signs."""
    if run.data.packing > 1 or not _tell_digits(run.parts):
        what = f"{key} tells digits from signs by the ids of one problem"
        raise ValueError(f"{what}: it needs parts.coupled_ids or parts.abacus_ids, and data.packing=1")


def _tell_digits(parts: Parts) -> bool:
    return bool({*parts} & {"coupled_ids", "abacus_ids"})


class FarDigits(Part):
    pairs = distances = True

    def act(self, inputs: Inputs, step: Step) -> Act:
        assert step.visible_BHQK is not None
        assert step.positions is not None
        far_BQK = far_digits(step.positions, step.visible_BHQK[:, 0])
        too_many_BQ1 = (far_BQK & step.visible_BHQK[:, 0]).sum(-1, keepdim=True) / self.config.at_most
        return Biased((-too_many_BQ1.clamp(min=1).log() * far_BQK)[:, None].to(step.hidden_BQD.dtype))


def far_digits(positions: Positions, visible_BQK: torch.Tensor) -> torch.Tensor:
    """Which keys are digits that are far from the query, (B, Q, K)."""
    return (positions.distances_BQK >= FAR) & digits(positions, visible_BQK)


def digits(positions: Positions, visible_BQK: torch.Tensor) -> torch.Tensor:
    """Which keys are digits and not signs, (B, Q, K).

    The first key of a query, <begin>, is a sign. The other signs have the same id as <begin>. If ids wrap around, they
    have the id before that of the second key, which is the first digit: in training, the ids of all tokens except
    <begin> are shifted.
    """
    ids_BK, circle = positions.keys_BK, positions.circle
    first_BQ = visible_BQK.int().argmax(-1).expand(len(ids_BK), -1)
    if circle is None:
        signs_BQ = ids_BK.gather(1, first_BQ)
    else:
        signs_BQ = (ids_BK.gather(1, (first_BQ + 1).clamp(max=ids_BK.shape[1] - 1)) - 1) % circle
    is_sign_BQK = ids_BK[:, None] == signs_BQ[..., None]
    is_first_BQK = torch.arange(ids_BK.shape[1], device=ids_BK.device) == first_BQ[..., None]
    return ~(is_sign_BQK | is_first_BQK)
