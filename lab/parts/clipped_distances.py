"""RoPE with clipped distances: a key that is farther away than a limit is scored as if it were at the limit.

RoPE gives a score to every distance from query to key, even to distances that never occur in training. In numbers
longer than those of training, far digits have such distances, and may get any weight (finding F-076). With a limit c,
the score of a query i and a key j is

    q R(clip(j - i, -c, c)) k        R(d): the rotation by d position ids

Relative keys are clipped by definition (Shaw et al. 2018, arXiv 1803.02155, section 3.2). For RoPE, Su (2023) calls it
ReRoPE.

Shapes: B rows, H heads, Q queries, K keys, D width of a head.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import torch
from pydantic import Field
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

from lab.config.parts import PartConfig, Parts
from lab.errors import ModelError
from lab.parts.part import Act, Inputs, Part, Step
from lab.parts.positions import Positions

Angles: TypeAlias = tuple[torch.Tensor, torch.Tensor]
"""The cosines and sines, (B, T, D), of a rotation by position ids."""


class ClippedDistancesConfig(PartConfig, kind="clipped_distances"):
    """Keys whose position ids are farther away than a limit are scored as if they were at it, so long numbers have no
    distances that short ones lack. Needs RoPE, and may be added after training (finding F-076)."""

    LATER = ("at",)

    at: int = Field(default=9, ge=1)
    """The limit."""

    def check(self, run: Any) -> None:
        check_that_rope_is_left(run.parts, "parts.clipped_distances")

    def build(self, model: Any, others: Parts) -> "ClippedDistances":
        try:
            check_that_rope_is_left(others, "parts.clipped_distances")
        except ValueError as error:
            raise ModelError(str(error)) from None
        return ClippedDistances(self)


def check_that_rope_is_left(parts: Parts, key: str) -> None:
    """Raises ValueError, for the part of the config's `key`, if another part removes the rotation."""
    if others := [kind for kind, part in parts.items() if not part.ROTATES]:
        raise ValueError(f"{key} works only with RoPE, not with parts.{others[0]}")


class ClippedDistances(Part):
    pairs = distances = beyond_scores = True

    def act(self, inputs: Inputs, step: Step) -> Act:
        assert step.positions is not None
        return Clipped(self.config.at, step.positions, partial(step.rotary, step.hidden_BQD))


class Clipped(Act):
    rescores = True

    def __init__(self, distance: int, positions: Positions, angles: Callable[[torch.Tensor], Angles]) -> None:
        """
        Args:
            distance: the limit.
            positions: the position ids.
            angles: cosines and sines of position ids.
        """
        ahead_BQK = positions.ahead[0]
        self.beyond_BQK = ahead_BQK.sign() * (ahead_BQK.abs() > distance)
        """-1 for keys that are below a query by more than the limit, 1 for keys that are above it by more."""
        self.key_back = angles(-positions.keys_BK)
        """Undoes the rotation of keys."""
        self.query_to = {side: angles(-positions.queries_BQ - side * distance) for side in (-1, 1)}
        """Replaces the rotation of queries by the one for keys at the limit, below (-1) or above (1) the query."""

    def scores(
        self,
        layer: int,
        scores_BHQK: torch.Tensor,
        query_BHQD: torch.Tensor,
        key_BHKD: torch.Tensor,
        mask_BHQK: torch.Tensor,
        scale: float,
    ) -> torch.Tensor:
        still_BHDK = _turned(key_BHKD, self.key_back).transpose(-1, -2)
        for side, angles in self.query_to.items():
            clipped_BHQK = _turned(query_BHQD, angles) @ still_BHDK * scale + mask_BHQK
            scores_BHQK = torch.where((self.beyond_BQK == side)[:, None], clipped_BHQK, scores_BHQK)
        return scores_BHQK


def _turned(states_BHTD: torch.Tensor, angles: Angles) -> torch.Tensor:
    return apply_rotary_pos_emb(states_BHTD, states_BHTD, *angles)[0]
