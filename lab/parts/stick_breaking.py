"""Heads that attend to the nearest token that fits: stick-breaking attention (Tan et al. 2024, arXiv 2410.17980).

A query walks back over the tokens before it. At each one it stops with a probability, sigmoid(score), and its weight is
the probability of stopping there:

    tokens         a  b  c  d  query
    score          2  5 -9 -9
    stops with    .9  1  0  0            weights: 0 for d and c, nearly 1 for b, nearly 0 for a, which lies behind b

So the nearest token with a high score gets all the attention, whatever lies behind it, and tokens with low scores are
passed by. No position is involved, and nothing has to be learned about distances: what holds over 10 tokens holds over
1,000, as long as few tokens are stopped at by mistake. To find the last place where two numbers differ, a softmax head
needs a bias that grows with distance, and scores that outweigh it; a stick-breaking head needs neither.

A stop by mistake has a small probability at each token that is passed, and these probabilities add up over long rows.
So scores are multiplied by the logarithm of the number of tokens before the query, as others do for softmax (Chiang and
Cholak 2022, arXiv 2202.12172). If all n scores are -s, the probability of a stop is then about n^-s at each token and
n^(1-s) at any of them, which falls with n if s is above 1.

The weights add up to at most 1. What is left is the probability of never stopping; it adds nothing to the output.

A head may also walk down the places of numbers instead of back over the tokens (`Downward`). If numbers are written as
people write them, the carry into a place depends on the next lower place whose digits do not add up to nine, however
far away it is; a head that stops there finds it.

Shapes: B rows, H heads, Q queries, K keys.
"""

from typing import Any, NamedTuple

import torch
from pydantic import Field
from torch.nn.functional import logsigmoid, pad

from lab.config.parts import PartConfig, Parts
from lab.errors import ModelError
from lab.parts.part import Act, Inputs, Part, Step


class StickBreakingConfig(PartConfig, kind="stick_breaking"):
    """Heads that attend to the nearest earlier token that matches, however far away it is (Tan et al. 2024). They see
    the order of tokens but not their position ids, so parts that change the mask do not apply to them."""

    heads: int = Field(default=1, ge=1)
    """How many heads of each layer (the last ones) use stick-breaking attention."""
    downward: int = Field(default=0, ge=0)
    """With parts.countdown_ids: how many of these heads (the last ones) walk down the places instead of back over the
    tokens. They start one place below the digit that is written next, and attend to the highest place that matches."""

    def check(self, run: Any) -> None:
        if all(part.ROTATES for part in run.parts.values()):
            what = "parts.stick_breaking needs positions that do not rotate"
            raise ValueError(f"{what}: parts.relative_keys, for example")
        if self.downward > self.heads:
            what = f"parts.stick_breaking.downward={self.downward}"
            raise ValueError(f"{what}, but only parts.stick_breaking.heads={self.heads} heads can walk")
        if self.downward and not any(part.ONES_FIRST for part in run.parts.values()):
            what = "parts.stick_breaking.downward needs parts.countdown_ids"
            raise ValueError(f"{what}: its lowest ids are at ones digits")

    def build(self, model: Any, others: Parts) -> "StickBreaking":
        if self.heads > model.num_attention_heads:
            what = f"parts.stick_breaking.heads={self.heads}"
            raise ModelError(f"{what}: each layer of the model has {model.num_attention_heads}")
        circles = [getattr(other, "largest", None) for other in others.values() if other.DECIDES]
        return StickBreaking(self, circles[0] if circles and self.downward else None)


class StickBreaking(Part):
    pairs = beyond_scores = True

    def __init__(self, config: StickBreakingConfig, circle: int | None) -> None:
        """`circle`: the number of ids of places, if heads walk down and ids wrap around."""
        super().__init__(config)
        self.circle = circle
        self.distances = config.downward > 0  # type: ignore[misc]

    @property
    def most_digits(self) -> int | None:
        # places are compared the shorter way round the circle of ids, so a row may span only half of it
        return self.circle // 2 - 2 if self.circle else None

    def act(self, inputs: Inputs, step: Step) -> Act:
        assert step.visible_BHQK is not None
        downward = None
        if self.config.downward and step.positions is not None:
            downward = Downward.of(step.positions.queries_BQ, step.positions.keys_BK, step.positions.circle)
        return _Walking(self.config, earlier(step.visible_BHQK), downward)


class _Walking(Act):
    def __init__(self, config: StickBreakingConfig, earlier_BHQK: torch.Tensor, downward: "Downward | None") -> None:
        self.own_heads, self.back = config.heads, config.heads - config.downward
        self.earlier_BHQK, self.downward = earlier_BHQK, downward

    def weights(self, layer: int, scores_BHQK: torch.Tensor) -> torch.Tensor:
        back_BHQK = sharpened(scores_BHQK[:, : self.back], self.earlier_BHQK)
        weights_BHQK = stick_breaking_weights(back_BHQK, self.earlier_BHQK)
        if self.downward is None:
            return weights_BHQK
        below_BHQK = self.downward.weights(scores_BHQK[:, self.back :], self.earlier_BHQK)
        return torch.cat([weights_BHQK, below_BHQK], 1)


def earlier(visible_BHQK: torch.Tensor) -> torch.Tensor:
    """The visible keys of each query except itself, which is the last of them."""
    seen_BHQK = visible_BHQK.cumsum(-1)
    return visible_BHQK & (seen_BHQK < seen_BHQK[..., -1:])


def stick_breaking_weights(scores_BHQK: torch.Tensor, visible_BHQK: torch.Tensor) -> torch.Tensor:
    """The weights (B, H, Q, K) of keys: sigmoid(score) times the product of 1 - sigmoid over the keys after it.

    `visible_BHQK`: the keys that a query may stop at. A query without any has weights 0.
    """
    scores_BHQK = scores_BHQK.float()
    passed_BHQK = logsigmoid(-scores_BHQK).masked_fill(~visible_BHQK, 0)
    # summed from the end: in a difference of sums from the front, small terms would be lost to rounding
    behind_BHQK = pad(passed_BHQK[..., 1:].flip(-1).cumsum(-1).flip(-1), (0, 1))
    return (logsigmoid(scores_BHQK) + behind_BHQK).exp().masked_fill(~visible_BHQK, 0)


class Downward(NamedTuple):
    """The order in which heads walk down the places of a row."""

    order_BK: torch.Tensor
    """The keys from the lowest place to the highest; keys of one place stay in the order of the tokens."""
    below_BQK: torch.Tensor
    """For keys in this order: whether a query may stop there. A token of place p writes the digit of place p - 1, so it
    walks from place p - 2 down. Places that are not whole numbers count as if they were rounded."""

    @classmethod
    def of(cls, positions_BQ: torch.Tensor, positions_BK: torch.Tensor, circle: int | None) -> "Downward":
        """The order of position ids. If they wrap around after `circle` ids, the places of a row should span less than
        half of the circle."""
        places_BQ, places_BK = positions_BQ.detach(), positions_BK.detach()
        if circle is not None:
            start_B1, half = positions_BK[:, 1:2], circle // 2
            places_BQ, places_BK = ((ids - start_B1 + half) % circle for ids in (places_BQ, places_BK))
        return cls.through(places_BK, places_BK[:, None] < places_BQ[:, :, None] - 1.5)

    @classmethod
    def through(cls, places_BK: torch.Tensor, below_BQK: torch.Tensor) -> "Downward":
        """The order of places. `below_BQK`: whether a query may stop at a key, for keys in the order of the tokens."""
        order_BK = places_BK.argsort(dim=-1, stable=True)
        return cls(order_BK, below_BQK.gather(-1, order_BK[:, None].expand_as(below_BQK)))

    def weights(self, scores_BHQK: torch.Tensor, visible_BHQK: torch.Tensor) -> torch.Tensor:
        """The stick-breaking weights (B, H, Q, K) of keys in the order of the tokens, with sharpened scores."""
        order_BHQK = self.order_BK[:, None, None].expand_as(scores_BHQK)
        below_BHQK = self.below_BQK[:, None] & visible_BHQK.expand_as(scores_BHQK).gather(-1, order_BHQK)
        scores_BHQK = sharpened(scores_BHQK.gather(-1, order_BHQK), below_BHQK)
        weights_BHQK = stick_breaking_weights(scores_BHQK, below_BHQK)
        return torch.zeros_like(weights_BHQK).scatter(-1, order_BHQK, weights_BHQK)


def sharpened(scores_BHQK: torch.Tensor, visible_BHQK: torch.Tensor) -> torch.Tensor:
    """The scores times the logarithm of 1 + the number of keys that a query may stop at."""
    return scores_BHQK * visible_BHQK.sum(-1, keepdim=True).log1p().to(scores_BHQK.dtype)
