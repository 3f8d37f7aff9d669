"""What a model loses if the output of a head or an MLP no longer depends on the prompt.

The output is replaced, token by token, by its mean over the prompts of a contrast whose tokens have the same roles
(mean ablation), or by the output for another such prompt (resample ablation; Chan et al. 2022, causal scrubbing). The
replacement still depends on the token's role, but not on the prompt. Zero ablation is not offered: zeros would be an
input that the rest of the model has never seen.

If two heads can stand in for each other, ablating one of them changes nothing. Ablate them together, and compare with
random groups of as many components. For additions, lab/probing/addition/ablation.py tells losses by column and carry.

Shapes: B rows, G groups of components, T tokens.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import torch

from lab.errors import TaskError, check_one_of
from lab.probing.answered import Answered, Runs
from lab.probing.batching import batches
from lab.probing.bridge import Subject, check_components
from lab.probing.components import Component
from lab.probing.contrast import EVERYWHERE, Asked, Contrast, Contrasting
from lab.probing.instruments.patching import BATCH, replacing
from lab.probing.measured import Measured

Replacement: TypeAlias = Literal["mean", "resample"]
Group: TypeAlias = tuple[Component, ...]
"""Components that are ablated together."""


class Ablated(NamedTuple):
    """What is left after an ablation; the label of a group joins its components with "+"."""

    right: Measured
    """The share of bases that are still answered right; axes direction, group."""
    kept: Measured
    """The metric of the ablated bases, as a share of the way from the source's answer (0) to the base's (1)."""


@torch.inference_mode()
def ablate(
    subject: Subject,
    pairs: Contrasting,
    groups: Sequence[Group],
    replacement: Replacement = "mean",
    place: str = EVERYWHERE,
    batch_size: int = BATCH,
) -> Ablated:
    """Ablates each group in all bases, at the tokens with one role.

    Raises the same errors as `Answered.of_right_pairs`, TaskError for an unknown replacement or place, if there is
    nothing to ablate, or if a prompt is the only one with its layout, and ModelError for unknown components.
    """
    check_one_of("replacement", replacement, get_args(Replacement))
    if not groups or not all(groups):
        raise TaskError("nothing to ablate: give groups of at least one component")
    check_components(subject, [one for group in groups for one in group])
    answered = Answered.of_right_pairs(subject, pairs, batch_size)
    contrast, points = answered.contrast, sorted({one.hook_point for group in groups for one in group})
    layouts = layouts_of(contrast)
    instead = means_by_layout(subject, contrast, points, batch_size) if replacement == "mean" else None
    others_B, here_BT = _others(layouts), contrast.at_BT(place)
    changed, right = np.full((2, len(answered), len(groups)), np.nan)
    for rows in batches(len(answered), batch_size):
        runs = Runs(answered, rows, [], [])
        given = {name: of_B[rows] for name, of_B in instead.items()} if instead else None
        if given is None:
            given = subject.activations(contrast.base.part(others_B[rows].tolist()), points)[1]
        for few in batches(len(groups), max(1, batch_size // len(runs))):
            lowest = min(one.layer for group in groups[few] for one in group)
            hooks = replacing(groups[few], given, here_BT[None, rows])
            found = runs.rerun_and_judge(range(lowest, subject.layers), hooks, len(groups[few]))
            changed[rows, few], right[rows, few] = (part.T.cpu().numpy() for part in found)
    axes = {"group": ["+".join(map(str, group)) for group in groups]}
    effect = answered.effects("kept", axes, changed).effect
    return Ablated(
        Measured.share("bases answered right", {**answered.directions, **axes}, answered.by_direction(right)),
        effect._replace(value=1 - effect.value, low=1 - effect.high, high=1 - effect.low),
    )


def layouts_of(contrast: Contrast) -> torch.Tensor:
    """A number for each row, (B,), the same for rows whose queries and roles are at the same tokens."""
    roles = [has_BT.long() for has_BT in contrast.roles.values()]
    return torch.cat([contrast.query_at_BQ, *roles], 1).unique(dim=0, return_inverse=True)[1]


def means_by_layout(
    subject: Subject, contrast: Contrast, points: Sequence[str], batch_size: int
) -> dict[str, torch.Tensor]:
    """For each row, the mean activations (B, T, ...) over the bases with the same layout, because a mean over all would
    mix tokens of different roles. If few rows have a layout, its mean is over few."""
    layouts_B, there_BT = layouts_of(contrast), contrast.at_BT(EVERYWHERE)
    groups = [torch.nonzero(layouts_B == layout)[:, 0] for layout in range(int(layouts_B.max()) + 1)]
    found = [means(subject, contrast.base.part(rows.tolist()), there_BT[rows], points, batch_size) for rows in groups]
    return {name: torch.cat([one[name] for one in found])[layouts_B] for name in points}


def means(
    subject: Subject, asked: Asked, there_BT: torch.Tensor, points: Sequence[str], batch_size: int
) -> dict[str, torch.Tensor]:
    """The mean activation of each hook point at each position (1, T, ...), over the prompts that have a token there."""
    totals: dict[str, torch.Tensor] = {}
    for rows in batches(len(asked), batch_size):
        _, found = subject.activations(asked.part(rows), points)
        for point, activation in found.items():
            here_BT = there_BT[rows].to(activation.device)
            weights = here_BT.reshape(*here_BT.shape, *[1] * (activation.ndim - 2))
            totals[point] = totals.get(point, 0) + (activation.float() * weights).sum(0, keepdim=True)
    counts_T = there_BT.sum(0).clamp(min=1)
    shapes = {point: (1, -1, *[1] * (total.ndim - 2)) for point, total in totals.items()}
    return {point: total / counts_T.to(total).reshape(shapes[point]) for point, total in totals.items()}


def _others(layouts_B: torch.Tensor) -> np.ndarray:
    """For each row, another row with the same layout, in a single random cycle through all of them. Raises TaskError
    for a layout that only one row has."""
    found, generator = np.empty(len(layouts_B), dtype=int), np.random.default_rng(0)
    for layout in range(int(layouts_B.max()) + 1):
        rows = np.flatnonzero(layouts_B.numpy() == layout)
        if len(rows) < 2:
            raise TaskError("ablation needs at least two prompts whose tokens have the same roles; give more pairs")
        order = generator.permutation(rows)
        found[order] = np.roll(order, 1)
    return found
