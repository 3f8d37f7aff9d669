"""Steering: a vector that is added to the residual stream, and how far it turns answers (Turner et al. 2023, arXiv
2308.10248; contrastive pairs: Rimsky et al. 2023, arXiv 2312.06681).

The vector of a contrast is the mean of what its sources have and its bases have not, at the tokens with one role:

    v = mean of (x_source - x_base)

It is learned on one half of the pairs, within their first direction, and added to the bases of the other half with
growing strength. The control is a random vector of the same length.

Shapes: B rows, T tokens, D width of the model.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch

from lab.probing.answered import Answered
from lab.probing.bridge import Hook, Subject
from lab.probing.components import Site
from lab.probing.contrast import LAST, Contrast, Contrasting
from lab.probing.instruments.interchange import Location, halves, stream_differences
from lab.probing.interventions import only_logits_at, residual
from lab.probing.measured import Measured

STRENGTHS = (0.0, 0.5, 1.0, 2.0)
VECTORS = ("steering", "random")


def vector(subject: Subject, pairs: Contrasting, layer: int, site: Site = "post", place: str = LAST) -> torch.Tensor:
    """The steering vector (D,) of a contrast's first direction, in float32. Raises the errors of `pairs.contrast`."""
    contrast = pairs.contrast(subject)
    first = contrast.part(np.flatnonzero(contrast.direction_B == 0).tolist())
    moved_BTD = stream_differences(subject, first, Location(layer, site, place))
    count = max(1, int(first.at_BT(place).sum()))
    return moved_BTD.sum((0, 1)) / count


def adding(layer: int, vector_D: torch.Tensor, strength: float = 1.0, site: Site = "post") -> list[Hook]:
    """Hooks that add a vector to the stream at every token, for `Subject.logits` and `generation.generate`."""

    def change(stream_BTD: torch.Tensor) -> torch.Tensor:
        return stream_BTD + strength * vector_D.to(stream_BTD)

    return residual(layer, site, change)


def steer(
    subject: Subject,
    pairs: Contrasting,
    layers: Sequence[int] | None = None,
    strengths: Sequence[float] = STRENGTHS,
    place: str = LAST,
    batch_size: int = 64,
) -> Measured:
    """How often a base of the first direction is answered like its source: axes layer, strength, vector.

    Raises the same errors as `Answered.of_right_pairs`, and TaskError if fewer than two pairs are right.
    """
    layers = range(subject.layers) if layers is None else layers
    train, test = halves(Answered.of_right_pairs(subject, pairs, batch_size).contrast)
    rows = test.part(np.flatnonzero(test.direction_B == 0).tolist())
    target_B = rows.answers("source")[:, 0]
    axes = {"layer": list(layers), "strength": list(strengths), "vector": list(VECTORS)}
    hits = np.zeros((len(rows), *map(len, axes.values())))
    for i, layer in enumerate(layers):
        own_D = vector(subject, train, layer, place=place)
        noise_D = torch.randn(own_D.shape, generator=torch.Generator().manual_seed(layer)).to(own_D)
        for j, strength in enumerate(strengths):
            for k, one_D in enumerate((own_D, noise_D * own_D.norm() / noise_D.norm())):
                said_B = _said(subject, rows, layer, strength * one_D, place)
                hits[:, i, j, k] = (said_B == target_B).numpy()
    return Measured.share("bases answered like their sources", axes, hits)


@torch.inference_mode()
def _said(subject: Subject, rows: Contrast, layer: int, move_D: torch.Tensor, place: str) -> torch.Tensor:
    """The most likely token of each row if the stream is moved at the tokens with a role, (B,)."""
    there_BT1 = rows.at_BT(place)[..., None]
    hooks = residual(layer, "post", partial(_moved, move_D, there_BT1))
    return subject.logits(rows.base, [*hooks, only_logits_at(rows.query_at_BQ)])[:, 0].argmax(-1).cpu()


def _moved(move_D: torch.Tensor, there_BT1: torch.Tensor, stream_BTD: torch.Tensor) -> torch.Tensor:
    return stream_BTD + there_BT1.to(stream_BTD) * move_D.to(stream_BTD)
