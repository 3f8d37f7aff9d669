"""AtP*: attribution patching without two of its blind spots (Kramár et al. 2024, arXiv 2403.00745).

    saturated attention   If attention is certain, the slope of the softmax is close to zero and says nothing about
                          queries and keys. So the softmax is computed again with the source's queries or keys, and only
                          what follows it is linearized:  sum of (new pattern - pattern) dm/dpattern
    cancelling paths      Effects along two paths may cancel in a gradient. So the gradient is also computed without the
                          paths through each layer in turn, and the sizes are averaged (GradDrop). If plain
                          attribution is larger than this average, it counts instead, which the paper does not do

The score of a head is the largest of those of its output, queries, keys and values. Like every attribution, it only
ranks components: signs are lost.

Shapes: B pairs (each in both directions), T tokens, H heads, G key-value heads, I inputs of a head, L layers.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from lab.probing.bridge import Hook, Subject
from lab.probing.components import Component
from lab.probing.contrast import WAYS, Contrast, Runs
from lab.probing.measured import Measured, either_way
from lab.probing.pairs import Pairs
from lab.probing.positions import batches

INPUTS = ("output", "q", "k", "v")
_BATCH = 64
"""Rows per pass with gradients."""


def atp_star(subject: Subject, pairs: Pairs) -> tuple[Measured, Measured]:
    """The sizes of the attributed effects of heads (axes carry, layer, head, input) and of MLPs (axes carry, layer).

    Takes one pass with gradients, another for each layer, and two short passes a layer for its patterns.
    Raises the same errors as `Contrast`, and ModelError for a subject that cannot add.
    """
    contrast = Contrast.able(subject, pairs, _BATCH)
    sizes = [_sizes(contrast, rows) for rows in batches(len(contrast), _BATCH)]
    head_BLHI, mlp_BL = (torch.cat(parts).numpy() for parts in zip(*sizes, strict=True))
    layers, name = range(subject.layers), "attributed size of effect"
    axes = {"layer": layers, "head": range(subject.heads), "input": INPUTS}
    return (
        contrast.effects_of_moves(f"{name} of a head", axes, head_BLHI).effect,
        contrast.effects_of_moves(f"{name} of an MLP", {"layer": layers}, mlp_BL).effect,
    )


def strongest(heads: Measured, mlps: Measured) -> dict[Component, float]:
    """The largest effect of each component, over both directions of the carry and all inputs of a head."""
    assert heads.axes["carry"] == list(WAYS)
    by_head, by_mlp = either_way(heads.value).max(-1), either_way(mlps.value)
    found = {Component("head", *place): float(by_head[place]) for place in np.ndindex(by_head.shape)}
    return found | {Component("mlp", layer): float(value) for layer, value in enumerate(by_mlp)}


def _sizes(contrast: Contrast, rows: slice) -> tuple[torch.Tensor, torch.Tensor]:
    """Sizes (B, L, H, I) and (B, L) in logits."""
    layers = range(contrast.subject.layers)
    points = ("hook_q", "hook_k", "hook_v", "hook_z", "hook_pattern")
    names = [*(f"blocks.{layer}.attn.{end}" for layer in layers for end in points),
             *(f"blocks.{layer}.hook_mlp_out" for layer in layers)]  # fmt: skip
    with torch.inference_mode():
        runs = Runs(contrast, rows, names, names)
        moved = {name: (runs.source[name] - runs.base[name]).float() for name in names}
        for layer in layers:
            moved |= {("q", layer): _pattern(runs, layer, "q"), ("k", layer): _pattern(runs, layer, "k")}
            moved["v", layer] = _values(runs, layer, moved[f"blocks.{layer}.attn.hook_v"])
    by_cut = [_attributed(contrast.subject, runs, moved, names, cut) for cut in (None, *layers)]
    whole, *cut = by_cut
    sized = [part.abs() for part in whole]
    for place in range(2):  # heads, then MLPs; runs in which a component's own layer is cut do not count for it
        for layer in layers:
            others = [one[place][:, layer].abs() for number, one in enumerate(cut) if number != layer]
            if others:
                mean = torch.stack(others).mean(0)
                sized[place][:, layer] = torch.maximum(sized[place][:, layer], mean)
    return sized[0].cpu(), sized[1].cpu()


def _pattern(runs: Runs, layer: int, name: str) -> torch.Tensor:
    """The change of a layer's attention pattern with the source's queries or keys, (B, H, T, T)."""
    point, pattern = f"blocks.{layer}.attn.hook_{name}", f"blocks.{layer}.attn.hook_pattern"
    found = runs.within(layer, [pattern], [(point, lambda activation, hook: runs.source[point])])
    return (found[pattern] - runs.base[pattern]).float()


def _values(runs: Runs, layer: int, moved_BTGZ: torch.Tensor) -> torch.Tensor:
    """The change of each head's output with the source's values and its own attention, (B, T, H, Z)."""
    pattern_BHTT = runs.base[f"blocks.{layer}.attn.hook_pattern"].float()
    moved_BTHZ = moved_BTGZ.repeat_interleave(pattern_BHTT.shape[1] // moved_BTGZ.shape[2], dim=2)
    return torch.einsum("bhqt,bthz->bqhz", pattern_BHTT, moved_BTHZ)


def _attributed(
    subject: Subject, runs: Runs, moved: dict[Any, torch.Tensor], names: Sequence[str], cut: int | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Effects with their signs, (B, L, H, I) and (B, L). `cut`: a layer through which no gradient passes."""
    slope = runs.slopes(names, hooks=_cutting(cut)).gradients
    with torch.inference_mode():
        heads, mlps = [], []
        for layer in range(subject.layers):
            block = f"blocks.{layer}.attn."
            z, pattern = slope[f"{block}hook_z"], slope[f"{block}hook_pattern"]
            by_input = {
                "output": (moved[f"{block}hook_z"] * z).sum((1, 3)),
                "q": (moved["q", layer] * pattern).sum((2, 3)),
                "k": (moved["k", layer] * pattern).sum((2, 3)),
                "v": (moved["v", layer] * z).sum((1, 3)),
            }
            heads.append(torch.stack([by_input[name] for name in INPUTS], dim=-1))
            added = f"blocks.{layer}.hook_mlp_out"
            mlps.append((moved[added] * slope[added]).sum((1, 2)))
        return torch.stack(heads, dim=1), torch.stack(mlps, dim=1)


def _cutting(layer: int | None) -> list[Hook]:
    """Hooks that stop gradients through what a layer adds to the stream; no hooks if `layer` is None."""

    def stop(activation: torch.Tensor, hook: Any) -> torch.Tensor:
        return activation.detach()

    return [] if layer is None else [(f"blocks.{layer}.{end}", stop) for end in ("hook_attn_out", "hook_mlp_out")]
