"""Two models side by side, such as before and after tuning: which heads moved, and which of them make the difference?

Both models read the same prompts; they need the same tokens, layers and heads, and nothing else.

    moved    how far a head's output is from the other model's: |z - z'| / |z|, over all tokens up to the query
    given    the output of a head or an MLP of the other model is put into this one, at all tokens. How much of the
             difference between the two models' metrics comes with it? 1 makes this model answer like the other

Shapes: B rows, T tokens, H heads, Z width of a head.
"""

from typing import NamedTuple

import numpy as np
import torch

from lab.errors import ModelError
from lab.probing.answered import Answered, Runs
from lab.probing.batching import batches
from lab.probing.bridge import Subject
from lab.probing.contrast import EVERYWHERE, Contrasting
from lab.probing.instruments.patching import BATCH, replacing
from lab.probing.measured import Measured


class Compared(NamedTuple):
    """What differs between two models."""

    moved: Measured
    """Axes layer, head."""
    given: Measured
    """Axes component."""
    gap: Measured
    """The other model's metric minus this one's, without axes."""


@torch.inference_mode()
def compare(subject: Subject, other: Subject, pairs: Contrasting, batch_size: int = BATCH) -> Compared:
    """Compares a model with another one on the bases of a contrast, whether or not they are answered right.

    Raises ModelError for models of another shape, and the errors of `pairs.contrast`.
    """
    shapes = [(one.layers, one.heads, one.width) for one in (subject, other)]
    if shapes[0] != shapes[1]:
        raise ModelError(f"{subject.name} and {other.name} have {shapes[0]} and {shapes[1]} layers, heads and width")
    answered = Answered(subject, pairs).run(batch_size)
    theirs = Answered(other, answered.contrast).run(batch_size)
    components, contrast = subject.components, answered.contrast
    names = sorted({one.hook_point for one in components})
    changed = np.zeros((len(answered), len(components)))
    moved = np.zeros((len(answered), subject.layers, subject.heads))
    here_BT = contrast.at_BT(EVERYWHERE)
    for rows in batches(len(answered), batch_size):
        runs = Runs(answered, rows, names, [])
        _, given = other.activations(contrast.base.part(rows), names)
        for layer in range(subject.layers):
            name = f"blocks.{layer}.attn.hook_z"
            weights = here_BT[rows].to(subject.device)[..., None, None]
            gaps = [
                ((one * weights).float()).square().sum((1, 3)).sqrt()
                for one in (runs.base[name] - given[name], runs.base[name])
            ]
            moved[rows, layer] = (gaps[0] / gaps[1].clamp(min=1e-9)).cpu().numpy()
        for few in batches(len(components), max(1, batch_size // len(runs))):
            group = [(one,) for one in components[few]]
            hooks = replacing(group, given, here_BT[None, rows])
            lowest = min(one.layer for one in components[few])
            changed[rows, few] = runs.rerun(range(lowest, subject.layers), hooks, len(group)).T.cpu().numpy()
    gap_B = theirs.corrupt_B - answered.corrupt_B
    sign_B = np.sign(gap_B)
    axes = {"component": list(map(str, components))}
    shared = (changed - answered.corrupt_B[:, None]) * sign_B[:, None]
    return Compared(
        Measured.mean("how far heads moved", {"layer": range(subject.layers), "head": range(subject.heads)}, moved),
        Measured.ratio("effect of the other model's component", axes, shared, np.abs(gap_B)),
        Measured.mean("metric of the other model - metric", {}, gap_B),
    )
