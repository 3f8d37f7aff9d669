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

from typing import NamedTuple

import torch
from torch.nn.functional import logsigmoid, pad


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
