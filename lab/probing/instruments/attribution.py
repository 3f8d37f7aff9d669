"""Attribution patching: estimates the effects of all patches from one gradient (Nanda 2023; Syed et al. 2023, arXiv
2310.10348).

    effect of a patch ~ sum over its tokens and dimensions of (source - base) dm/da,  a the base's activation

This is exact if the model is linear from there on. For a switch, such as a carry, the estimate is often wrong, both in
size and in which components it names, because it has no slope far from its threshold. So the estimate only ranks:
`screen` patches what it ranks first, and measures how well estimates and exact effects agree.

Shapes: B pairs (each in both directions), T tokens, H heads, N attributions, R resamples.
"""

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import torch
from scipy.stats import rankdata

from lab.probing.answered import Answered, Effects, Runs, clear
from lab.probing.batching import batches, check_positive
from lab.probing.bridge import Subject
from lab.probing.components import Component
from lab.probing.contrast import EVERYWHERE, Contrasting
from lab.probing.instruments.patching import BATCH, Patch, margins
from lab.probing.measured import Axes, Measured, max_abs_over_directions, nanmean

_RESAMPLES = 1000
_BATCH = 64
"""Rows per pass with gradients, which needs much memory."""
_TIES = 6
"""Effects, in logits, that agree to this many decimals are ties."""


class Screen(NamedTuple):
    """Attributed effects of all patches, and exact effects of the largest."""

    heads: Measured
    """Attributed effects; axes direction, layer, head, place."""
    mlps: Measured
    """The same; axes direction, layer, place."""
    attributed: Measured
    """The largest attributed effects in either direction, largest first; axes direction, patch."""
    exact: Measured
    """The effects of these patches; axes direction, patch."""
    agreement: Measured
    """Spearman's rank correlation of attributed and exact effects; axes direction; intervals by bootstrap over the
    pairs. Only these patches count, so a component that the estimate misses altogether does not lower it."""
    gap: Measured
    """See `answered.Effects`."""


def screen(
    subject: Subject, pairs: Contrasting, places: Sequence[str] | None = None, top: int = 20, batch_size: int = BATCH
) -> Screen:
    """Attributed effects of all heads and MLPs at the places, and exact effects of the `top` largest. The places are
    all roles of the contrast if none are given, or everywhere if it has none.

    `batch_size`: rows per pass without gradients. Raises the same errors as `patching.patch`, and TaskError if `top` is
    below 1.
    """
    check_positive("top", top)
    answered = Answered.of_right_pairs(subject, pairs, _BATCH)
    places = list(places or answered.contrast.places or (EVERYWHERE,))
    layers, heads = range(subject.layers), range(subject.heads)
    patches = [Patch((Component("head", *which),), place) for *which, place in product(layers, heads, places)]
    patches += [Patch((Component("mlp", layer),), place) for layer, place in product(layers, places)]
    guessed_BN = attributions(answered, places)

    def effects(name: str, axes: Axes, moved: np.ndarray) -> Effects:
        return answered.effects_of_moves(name, axes, moved.reshape(-1, *map(len, axes.values())))

    count = len(layers) * len(heads) * len(places)
    by_head, gap = effects(
        "attributed effect of a head", {"layer": layers, "head": heads, "place": places}, guessed_BN[:, :count]
    )
    by_mlp, _ = effects("attributed effect of an MLP", {"layer": layers, "place": places}, guessed_BN[:, count:])

    mean_WN = nanmean(answered.by_direction(guessed_BN), 0)
    chosen = np.argsort(-max_abs_over_directions(mean_WN), kind="stable")[:top]
    exact_BN = margins(answered, [patches[n] for n in chosen], batch_size)
    axes = {"patch": [str(patches[n]) for n in chosen]}
    moved_BN = exact_BN - answered.corrupt_B[:, None]
    return Screen(
        by_head,
        by_mlp,
        effects("attributed effect", axes, guessed_BN[:, chosen]).effect,
        effects("effect", axes, moved_BN).effect,
        _agreement(answered, guessed_BN[:, chosen], moved_BN, gap),
        gap,
    )


def attributions(
    answered: Answered, places: Sequence[str], batch_size: int = _BATCH, half_way: bool = False
) -> np.ndarray:
    """The estimates of what each patch adds to the margin, in logits, (B, N): first heads (layer, head, place), then
    MLPs (layer, place); nan if a pair has no such place. `half_way`: take gradients half-way between the embeddings of
    base and source, and not at the base."""
    subject = answered.subject
    components = [Component(kind, layer) for kind in ("head", "mlp") for layer in range(subject.layers)]
    names = [component.hook_point for component in components]
    at_PBT = torch.stack([answered.contrast.at_BT(place) for place in places])
    guessed = []
    for rows in batches(len(answered), batch_size):
        embedding = "blocks.0.hook_resid_pre"
        with torch.inference_mode():
            runs = Runs(answered, rows, [*names, embedding], [*names, embedding])
            middle = (runs.base[embedding] + runs.source[embedding]) / 2 if half_way else None
        slopes = runs.slopes(names, middle).gradients
        at = at_PBT[:, rows].to(subject.device)
        found = []
        with torch.inference_mode():
            for name, slope in slopes.items():
                by_token = ((runs.source[name] - runs.base[name]).float() * slope).sum(-1)
                by_head = by_token if by_token.ndim == 3 else by_token[..., None]
                found.append(torch.einsum("bth,pbt->bhp", by_head, at.float()).flatten(1))
            there_BP = at.any(2).T
            width = sum(part.shape[1] for part in found) // len(places)
            all_BN = torch.cat(found, dim=1)
            guessed.append(torch.where(there_BP.repeat(1, width), all_BN, float("nan")).cpu())
    return torch.cat(guessed).numpy()


def _agreement(answered: Answered, guessed_BN: np.ndarray, exact_BN: np.ndarray, gap: Measured) -> Measured:
    """The rank correlation of estimated and exact effects; nan if effects are nan, or if all estimates or all effects
    are equal."""
    axes = answered.directions
    value, low, high = np.full((3, len(gap.value)), np.nan)
    n = np.zeros(len(gap.value), int)
    for direction in np.flatnonzero(clear(gap)):
        of_direction_B = answered.contrast.direction_B == direction
        there_N = ~np.isnan(guessed_BN[of_direction_B] + exact_BN[of_direction_B]).all(0)
        guessed, exact = (samples[of_direction_B][:, there_N] for samples in (guessed_BN, exact_BN))
        n[direction] = there_N.sum()
        value[direction] = spearman(nanmean(guessed, 0), nanmean(exact, 0))
        rows_RB = np.random.default_rng(0).integers(len(guessed), size=(_RESAMPLES, len(guessed)))
        drawn_R = spearman(nanmean(guessed[rows_RB], 1), nanmean(exact[rows_RB], 1))
        if not np.isnan(drawn_R).all():
            low[direction], high[direction] = np.nanquantile(drawn_R, [0.025, 0.975])
    return Measured("rank correlation of attributed and exact effects", axes, value, low, high, n)


def spearman(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Rank correlation (Spearman 1904) along the last dimension. Ties share their mean rank; nan if all values of one
    side are equal. Values are first rounded to a millionth, so that numerical errors, which depend on the batch size,
    do not break ties."""
    ranked = (rankdata(np.round(values, _TIES), axis=-1) for values in (left, right))
    left, right = (ranks - ranks.mean(-1, keepdims=True) for ranks in ranked)
    with np.errstate(invalid="ignore"):
        return (left * right).sum(-1) / np.sqrt((left**2).sum(-1) * (right**2).sum(-1))
