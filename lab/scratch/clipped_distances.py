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
from typing import NamedTuple, TypeAlias

import torch
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

from lab.scratch.position_encodings import ahead

Angles: TypeAlias = tuple[torch.Tensor, torch.Tensor]
"""The cosines and sines, (B, T, D), of a rotation by position ids."""


class ClippedDistances(NamedTuple):
    beyond_BQK: torch.Tensor
    """-1 for keys that are below a query by more than the limit, 1 for keys that are above it by more, 0 for others."""
    key_back: Angles
    """Undoes the rotation of keys."""
    query_to: dict[int, Angles]
    """Replaces the rotation of queries by the one for keys at the limit, below (-1) or above (1) the query."""

    @classmethod
    def of(
        cls,
        distance: int,
        positions_BQ: torch.Tensor,
        positions_BK: torch.Tensor,
        circle: int | None,
        angles: Callable[[torch.Tensor], Angles],
    ) -> "ClippedDistances":
        """
        Args:
            distance: the limit.
            positions_BQ: the position ids of queries.
            positions_BK: those of keys.
            circle: the number of ids, if they wrap around.
            angles: cosines and sines of position ids.
        """
        ahead_BQK = ahead(positions_BQ, positions_BK, circle)
        beyond_BQK = ahead_BQK.sign() * (ahead_BQK.abs() > distance)
        query_to = {side: angles(-positions_BQ - side * distance) for side in (-1, 1)}
        return cls(beyond_BQK, angles(-positions_BK), query_to)

    def products(self, query_BHQD: torch.Tensor, key_BHKD: torch.Tensor) -> torch.Tensor:
        """The products (B, H, Q, K) of rotated queries and keys."""
        products_BHQK = query_BHQD @ key_BHKD.transpose(-1, -2)
        still_BHDK = _turned(key_BHKD, self.key_back).transpose(-1, -2)
        for side, angles in self.query_to.items():
            clipped_BHQK = _turned(query_BHQD, angles) @ still_BHDK
            products_BHQK = torch.where((self.beyond_BQK == side)[:, None], clipped_BHQK, products_BHQK)
        return products_BHQK


def _turned(states_BHTD: torch.Tensor, angles: Angles) -> torch.Tensor:
    return apply_rotary_pos_emb(states_BHTD, states_BHTD, *angles)[0]
