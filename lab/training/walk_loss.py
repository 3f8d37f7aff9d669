"""An auxiliary loss that tells walking heads where to stop (lab/models/walking_heads.py).

Before each digit of an answer, a walking head should stop at the nearest lower place whose digits do not add up to
nine, because that place decides about the carry. If there is none, it should not stop. The loss is the negative
logarithm of the probability of doing so: the mean over walking heads, the sum over digits. It changes only the
training, not what the model computes.

Shapes: B rows, Q queries, K keys, N walking heads of a layer.
"""

import torch

from lab.training.losses import AnswerLoss, base_model

_SMALLEST = torch.finfo(torch.float32).tiny
"""The smallest probability whose logarithm is taken. Below it, a head that is sure of a wrong stop learns nothing."""


class WalkLoss:
    """Another loss plus, during training, the weighted loss of walking heads."""

    def __init__(self, weight: float, answer_loss: AnswerLoss) -> None:
        self.weight, self.answer_loss = weight, answer_loss

    def __call__(self, model: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        if not model.training:
            return self.answer_loss(model, inputs)
        base, missed = base_model(model), []
        places_BK, below_BQK, decides_BQK = (inputs[name] for name in ("places_BK", "below_BQK", "decides_BQK"))

        def see(_: int, weights_BNQK: torch.Tensor) -> torch.Tensor:
            missed.append(missed_stops(weights_BNQK, places_BK, below_BQK, decides_BQK))
            return weights_BNQK

        base.walk_hook = see
        try:
            total = self.answer_loss(model, inputs)
        finally:
            base.walk_hook = None
        return total + self.weight * torch.stack(missed).mean()


def missed_stops(
    weights_BNQK: torch.Tensor, places_BK: torch.Tensor, below_BQK: torch.Tensor, decides_BQK: torch.Tensor
) -> torch.Tensor:
    """The loss of the walking heads of one layer.

    Args:
        weights_BNQK: the probability that each head stops at each key.
        places_BK: the places of keys.
        below_BQK: the keys that a query passes; queries without any do not count.
        decides_BQK: those among them at which it may stop; see `right_stops`.
    """
    stopped_BNQ = (weights_BNQK * right_stops(places_BK, decides_BQK)[:, None]).sum(-1)
    chances_BNQ = torch.where(decides_BQK.any(-1)[:, None], stopped_BNQ, 1 - weights_BNQK.sum(-1))
    missed_BNQ = -chances_BNQ.clamp(min=_SMALLEST).log() * below_BQK.any(-1)[:, None]
    return missed_BNQ.mean(1).sum()


def right_stops(places_BK: torch.Tensor, decides_BQK: torch.Tensor) -> torch.Tensor:
    """Where a query should stop, (B, Q, K): at the key that decides, and at the highest place if several do."""
    lowest = torch.iinfo(places_BK.dtype).min
    places_BQK = torch.where(decides_BQK, places_BK[:, None], lowest)
    return decides_BQK & (places_BQK == places_BQK.amax(-1, keepdim=True))
