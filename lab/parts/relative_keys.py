"""A learned vector for each distance: its product with a query is added to the scores (Shaw et al. 2018, arXiv
1803.02155, equation 4, for keys alone).

There is a vector for each signed distance up to 4, for each layer and head; farther keys count as 4 away. So the
distance that a token looks for depends on what the token is, and not on where it stands. If ids count in two
directions, there is a vector for the steps in each.

Shapes: B rows, Q queries, K keys, C distances, L layers, H heads, D width of a head.
"""

from typing import Any

import torch
from torch import nn

from lab.config.parts import PartConfig, Parts
from lab.parts.nope import remove_rotation
from lab.parts.part import Act, Inputs, Part, Step
from lab.parts.positions import Positions

FAR = 4
"""Keys at this distance or farther count as far; relative keys do not tell them apart."""


class RelativeKeysConfig(PartConfig, kind="relative_keys"):
    """Queries and keys are not rotated; the product of the query with a learned vector for the signed distance, which
    is clipped at 4, is added to the scores instead (Shaw et al. 2018)."""

    ROTATES = False

    def build(self, model: Any, others: Parts) -> "RelativeKeys":
        directions = max([other.DIRECTIONS for other in others.values() if other.DECIDES], default=1)
        width = model.head_dim or model.hidden_size // model.num_attention_heads
        return RelativeKeys(self, model.num_hidden_layers, model.num_attention_heads, width, directions)


class RelativeKeys(Part):
    pairs = distances = beyond_scores = True
    reach = FAR

    def __init__(self, config: RelativeKeysConfig, layers: int, heads: int, width: int, directions: int = 1) -> None:
        super().__init__(config)
        self.keys = nn.Parameter(torch.empty(layers, heads, directions * (2 * self.reach + 1), width))
        self.reset()

    def reset(self) -> None:
        nn.init.normal_(self.keys, std=0.02)

    def attach(self, model: Any) -> None:
        remove_rotation(model)

    def act(self, inputs: Inputs, step: Step) -> Act:
        assert step.positions is not None
        return _Wanted(self.keys, self.distances_of(step.positions))

    def distances_of(self, positions: Positions) -> torch.Tensor:
        """The distance of each pair as a one-hot vector, (B, Q, K, C); with two directions, one such vector after the
        other."""
        parts = [self._one_hot(ahead_BQK) for ahead_BQK in positions.ahead]
        return parts[0] if len(parts) == 1 else torch.cat(parts, -1)

    def _one_hot(self, ahead_BQK: torch.Tensor) -> torch.Tensor:
        # a learned place may lie between two distances: then both count, the nearer one more
        all_C = torch.arange(-self.reach, self.reach + 1, device=ahead_BQK.device)
        apart_BQKC = (ahead_BQK.clamp(-self.reach, self.reach)[..., None] - all_C).abs()
        return (1 - apart_BQKC).clamp(min=0).to(self.keys.dtype)


class _Wanted(Act):
    rescores = True

    def __init__(self, keys_LHCD: torch.Tensor, distances_BQKC: torch.Tensor) -> None:
        self.keys_LHCD, self.distances_BQKC = keys_LHCD, distances_BQKC

    def scores(
        self,
        layer: int,
        scores_BHQK: torch.Tensor,
        query_BHQD: torch.Tensor,
        key_BHKD: torch.Tensor,
        mask_BHQK: torch.Tensor,
        scale: float,
    ) -> torch.Tensor:
        keys_HCD = self.keys_LHCD[layer, : query_BHQD.shape[1]].to(query_BHQD.dtype)
        wanted_BQHC = (query_BHQD @ keys_HCD.transpose(-1, -2) * scale).transpose(1, 2)
        # a product with one-hot vectors instead of indexing, because its gradient is a matrix product, too; the
        # gradient of indexing is summed pair by pair
        distances_BQCK = self.distances_BQKC.transpose(-1, -2).to(query_BHQD.dtype)
        return scores_BHQK + (wanted_BQHC @ distances_BQCK).transpose(1, 2)
