"""What attention does with position ids: rotate, add a bias, or nothing. `position_ids` says which ids tokens get.

- rope: rotates queries and keys by their ids (Su et al. 2021, arXiv 2104.09864), as Llama does.
- nope: nothing (Kazemnejad et al. 2023, arXiv 2305.19466).
- alibi: subtracts slope x distance from the scores, with slopes 2^(-8(h+1)/H) for heads h = 0..H-1 (Press et al. 2022,
  arXiv 2108.12409, section 3). alibi_released adds it instead, as the code published with the Number Cookbook does; the
  farthest token then gets the most attention.
- fire: adds a learned function of the distance (Li et al. 2024, arXiv 2310.04418).
- relative: adds the query's product with a learned vector for the signed distance, up to 4 (Shaw et al. 2018, arXiv
  1803.02155, equation 4, for keys alone).
- learned: nothing; instead, an embedding of each id is added to the inputs (Gehring et al. 2017, arXiv 1705.03122).

With rope, relative or learned, `locality` also subtracts slope x distance from the scores, with one slope for all heads
or one for each, given or learned. Heads find a digit by its id; this bias keeps the attention that leaks to other
digits from growing with the number of digits. `window` hides keys beyond a distance, so that nothing leaks to them.
`far_copies` leaves this to training: each far key counts as several keys, so that a model that leaks attention to far
digits is already wrong on short numbers. `far_at_most` bounds how much all far keys together weigh, in training or only
in a test.

The biases depend on |i - j| (FIRE's also on i), and relative keys on i - j, so ids need not grow along the row, and
coupled ids do not. Coupled ids wrap around, and their distance is the shorter way round: `circle` is then the number of
ids. For other ids it is None. Grid ids have two directions (`grid_places`): their distance is the larger one of the
two, and relative keys have a vector for the steps in each direction.

Shapes: B rows (or 1 for all), Q queries, K keys, T tokens, H heads, D width of a head or of the model.
"""

import math
from collections.abc import Sequence
from typing import Literal

import torch
from torch import nn

from lab.errors import ModelError
from lab.parts.alibi import alibi_slopes
from lab.scratch import grid_places


class AlibiBias(nn.Module):
    def __init__(self, heads: int, sign: Literal[-1, 1] = -1, circle: int | None = None) -> None:
        """`sign`: -1 as in the paper, or 1 as in the code released with the Number Cookbook. `circle`: the number of
        ids, if they wrap around."""
        super().__init__()
        self.heads, self.sign, self.circle = heads, sign, circle

    def forward(
        self, positions_BQ: torch.Tensor, positions_BK: torch.Tensor, visible_BQK: torch.Tensor | None = None
    ) -> torch.Tensor:
        """What is added to the scores, (B, H, Q, K); it does not depend on `visible_BQK`."""
        slopes_H11 = alibi_slopes(self.heads, positions_BQ.device)[:, None, None]
        return self.sign * slopes_H11 * distances(positions_BQ, positions_BK, self.circle)[:, None]


FAR = 4
"""Keys at this distance or farther count as far; relative keys do not tell them apart."""


class LocalityBias(nn.Module):
    """Changes the scores of distant keys: by slope x distance, by the window, and by the rules for far keys."""

    rate = 10.0
    """A learned slope is the absolute value of its parameter times this factor, because slopes must change more than
    weights in the same number of steps."""
    first_slope = 0.01
    """The value of a learned slope before training."""

    def __init__(
        self,
        slopes: float | Sequence[float] | Literal["learned"],
        circle: int | None = None,
        window: int = 0,
        free: Sequence[bool] = (),
        far_copies: float = 1,
        far_at_most: int = 0,
        grid: bool = False,
        heads: int = 1,
    ) -> None:
        """
        Args:
            slopes: one for all heads, or one for each head; or "learned", one for each head, the same in all layers.
            circle: the number of ids, if they wrap around.
            window: keys whose ids are farther away than this are hidden; 0 hides none.
            free: for each head, whether it is exempt from the window and from the rules for far keys; its slope always
                applies.
            far_copies: during training, each far key counts as this many keys.
            far_at_most: all far keys of a query together count as at most this many keys; 0 for no bound.
            grid: whether ids have two directions.
            heads: how many slopes there are, if they are learned.
        """
        super().__init__()
        self.learned = nn.Parameter(torch.empty(heads)) if slopes == "learned" else None
        self.given = [] if isinstance(slopes, str) else slopes if isinstance(slopes, Sequence) else [slopes]
        self.circle = circle
        self.window, self.free, self.far_copies, self.far_at_most = window, free, far_copies, far_at_most
        self.grid = grid
        self.reset()

    def reset(self) -> None:
        if self.learned is not None:
            nn.init.constant_(self.learned, self.first_slope / self.rate)

    def slopes(self, device: torch.device) -> torch.Tensor:
        """The slope of each head, or one for all heads; never below zero if learned."""
        if self.learned is not None:
            return self.rate * self.learned.abs().float()
        return torch.tensor(self.given, dtype=torch.float32, device=device)

    def forward(
        self, positions_BQ: torch.Tensor, positions_BK: torch.Tensor, visible_BQK: torch.Tensor | None = None
    ) -> torch.Tensor:
        """What is added to the scores, (B, H, Q, K), or (B, 1, Q, K) if it is the same for all heads.

        Signs (tokens that are not digits, such as "=") are never far: coupled ids give them all the same id, and a
        model needs to see them from anywhere.

        `visible_BQK`: which keys each query sees, all if not given; `far_at_most` counts only these.
        """
        device = positions_BQ.device
        slopes_H11 = self.slopes(device)[:, None, None]
        distances_B1QK = distances(positions_BQ, positions_BK, self.circle, self.grid)[:, None]
        bias_BHQK = -slopes_H11 * distances_B1QK
        bound_H11 = ~torch.tensor(self.free or [False], device=device)[:, None, None]
        copied = self.training and self.far_copies > 1
        if copied or self.far_at_most:
            far_BHQK = bound_H11 & (distances_B1QK >= FAR) & _digits(positions_BK, visible_BQK, self.circle)
            if self.window:
                far_BHQK = far_BHQK & (distances_B1QK <= self.window)
            if copied:
                bias_BHQK = bias_BHQK + math.log(self.far_copies) * far_BHQK
            if self.far_at_most:
                counted_BHQK = far_BHQK if visible_BQK is None else far_BHQK & visible_BQK[:, None]
                too_many_BHQ1 = counted_BHQK.sum(-1, keepdim=True) / self.far_at_most
                bias_BHQK = bias_BHQK - too_many_BHQ1.clamp(min=1).log() * far_BHQK
        if not self.window:
            return bias_BHQK
        return torch.where(bound_H11 & (distances_B1QK > self.window), float("-inf"), bias_BHQK)


class RelativeKeys(nn.Module):
    """A vector for each signed distance up to 4, for each layer and head. The product of a query with this vector is
    added to the score of a key at that distance; farther keys count as 4 away. So the distance that a token looks for
    depends on what the token is, and not on where it stands."""

    reach = FAR

    def __init__(self, layers: int, heads: int, width: int, circle: int | None = None, grid: bool = False) -> None:
        super().__init__()
        self.circle, self.grid = circle, grid
        directions = 2 if grid else 1
        self.keys = nn.Parameter(torch.empty(layers, heads, directions * (2 * self.reach + 1), width))
        self.reset()

    def reset(self) -> None:
        nn.init.normal_(self.keys, std=0.02)

    def forward(self, positions_BQ: torch.Tensor, positions_BK: torch.Tensor) -> torch.Tensor:
        """The distance of each pair as a one-hot vector, (B, Q, K, C); with two directions, one such vector after the
        other."""
        if self.grid:
            rows_BQK, places_BQK = grid_places.ahead(positions_BQ, positions_BK)
            return torch.cat([self._one_hot(rows_BQK), self._one_hot(places_BQK)], -1)
        return self._one_hot(ahead(positions_BQ, positions_BK, self.circle))

    def _one_hot(self, ahead_BQK: torch.Tensor) -> torch.Tensor:
        # a learned place may lie between two distances: then both count, the nearer one more
        all_C = torch.arange(-self.reach, self.reach + 1, device=ahead_BQK.device)
        apart_BQKC = (ahead_BQK.clamp(-self.reach, self.reach)[..., None] - all_C).abs()
        return (1 - apart_BQKC).clamp(min=0).to(self.keys.dtype)


class FireBias(nn.Module):
    """f(psi(|i - j|) / psi(max(L, i))), with psi(x) = log(c x + 1) and an MLP f of 1 input, 32 hidden units, H outputs.

    c, L and f are learned and shared by all layers (FIRE-S). The width and initial values are those of the paper's
    code.
    """

    hidden = 32
    initial_c, initial_threshold = 0.1, 512.0
    small = 1e-6
    """Keeps the quotient finite if c becomes 0."""

    def __init__(self, heads: int, circle: int | None = None) -> None:
        super().__init__()
        self.circle = circle
        self.c = nn.Parameter(torch.empty(()))
        self.threshold_scale = nn.Parameter(torch.empty(()))
        """L divided by its initial value, because the optimizer's steps suit numbers near 1."""
        self.into_mlp, self.out_of_mlp = nn.Linear(1, self.hidden), nn.Linear(self.hidden, heads)
        self.reset()

    def reset(self) -> None:
        """Draws the weights of the MLP from torch's default distribution. With Llama's standard deviation of 0.02 in
        both layers, the bias would start near zero."""
        nn.init.constant_(self.c, self.initial_c)
        nn.init.constant_(self.threshold_scale, 1.0)
        for layer in (self.into_mlp, self.out_of_mlp):
            bound = 1 / math.sqrt(layer.in_features)
            nn.init.uniform_(layer.weight, -bound, bound)
            nn.init.uniform_(layer.bias, -bound, bound)

    def forward(
        self, positions_BQ: torch.Tensor, positions_BK: torch.Tensor, visible_BQK: torch.Tensor | None = None
    ) -> torch.Tensor:
        """What is added to the scores, (B, H, Q, K); it does not depend on `visible_BQK`."""
        with torch.autocast(positions_BQ.device.type, enabled=False):  # bfloat16 cannot tell 257 from 256
            threshold = self.initial_threshold * self.threshold_scale.abs()
            longest_BQ1 = torch.maximum(positions_BQ, threshold)[:, :, None]
            distances_BQK = distances(positions_BQ, positions_BK, self.circle)
            share_BQK = self._psi(distances_BQK) / (self._psi(longest_BQ1) + self.small)
            return self.out_of_mlp(self.into_mlp(share_BQK[..., None]).relu()).permute(0, 3, 1, 2)

    def _psi(self, x: torch.Tensor) -> torch.Tensor:
        return torch.log1p(self.c.abs() * x)


class LearnedPositions(nn.Embedding):
    """A vector for each of `largest` ids, to be added to the inputs."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Vectors (B, T, D) of ids (B, T). Raises ModelError for an id without an embedding.

        There is no check during training on a GPU, because it would have to wait for the GPU, and none in compiled
        code. Rows are checked before the training instead.
        """
        looked_at = input.device.type == "cpu" or not self.training
        if looked_at and not torch.compiler.is_compiling() and (largest := int(input.max())) >= self.num_embeddings:
            raise ModelError(
                f"a row has position id {largest}, but only ids below {self.num_embeddings} have an embedding: "
                f"train with model.positions.largest above {largest}, or give shorter rows"
            )
        return super().forward(input)


def _digits(positions_BK: torch.Tensor, visible_BQK: torch.Tensor | None, circle: int | None) -> torch.Tensor:
    """Which keys are digits and not signs, (B, 1, Q or 1, K).

    The first key of a query, <begin>, is a sign. The other signs have the same id as <begin>. If ids wrap around, they
    have the id before that of the second key, which is the first digit: in training, the ids of all tokens except
    <begin> are shifted.
    """
    keys = positions_BK.shape[1]
    first_BQ = torch.zeros_like(positions_BK[:, :1]) if visible_BQK is None else visible_BQK.int().argmax(-1)
    first_BQ = first_BQ.expand(len(positions_BK), -1)
    if circle is None:
        signs_BQ = positions_BK.gather(1, first_BQ)
    else:
        signs_BQ = (positions_BK.gather(1, (first_BQ + 1).clamp(max=keys - 1)) - 1) % circle
    is_sign_BQK = positions_BK[:, None] == signs_BQ[..., None]
    is_first_BQK = torch.arange(keys, device=positions_BK.device) == first_BQ[..., None]
    return ~(is_sign_BQK | is_first_BQK)[:, None]


def ahead(positions_BQ: torch.Tensor, positions_BK: torch.Tensor, circle: int | None) -> torch.Tensor:
    """How many ids a key is above a query, (B, Q, K); the shorter way round the circle."""
    ahead_BQK = positions_BK[:, None] - positions_BQ[:, :, None]
    return ahead_BQK if circle is None else (ahead_BQK + circle // 2) % circle - circle // 2


def distances(
    positions_BQ: torch.Tensor, positions_BK: torch.Tensor, circle: int | None, grid: bool = False
) -> torch.Tensor:
    """|i - j|, the shorter way round the circle, or the larger distance of two directions; (B, Q, K)."""
    if grid:
        return grid_places.ahead(positions_BQ, positions_BK).abs().amax(0)
    return ahead(positions_BQ, positions_BK, circle).abs()
