"""How far keys are from queries by their position ids, as parts that depend on distances read it.

Shapes: B rows, Q queries, K keys.
"""

from collections.abc import Sequence
from typing import NamedTuple, Self

import torch


class Positions(NamedTuple):
    queries_BQ: torch.Tensor
    """The position ids of queries; 1 row may stand for all."""
    keys_BK: torch.Tensor
    """Those of keys."""
    ahead: Sequence[torch.Tensor]
    """How far each key is ahead of each query, (B, Q, K), in each direction in which ids count."""
    circle: int | None = None
    """The number of ids, if they wrap around."""

    @classmethod
    def of(cls, queries_BQ: torch.Tensor, keys_BK: torch.Tensor, circle: int | None = None) -> Self:
        """Ids that count in one direction. If they wrap around, distances are those of the shorter way round."""
        ahead_BQK = keys_BK[:, None] - queries_BQ[:, :, None]
        if circle is not None:
            ahead_BQK = (ahead_BQK + circle // 2) % circle - circle // 2
        return cls(queries_BQ, keys_BK, [ahead_BQK], circle)

    @property
    def distances_BQK(self) -> torch.Tensor:
        """How far apart queries and keys are: the largest of the distances in all directions."""
        apart = [ahead_BQK.abs() for ahead_BQK in self.ahead]
        return apart[0] if len(apart) == 1 else torch.stack(apart).amax(0)
