"""AtP*: attribution patching without two of its blind spots (Kramár et al. 2024, arXiv 2403.00745).

    saturated attention   If attention is certain, the softmax is saturated, and its gradient says nothing about
                          queries and keys. So the softmax is computed again with the source's queries or keys, and only
                          what follows it is linearized:  sum of (new pattern - pattern) dm/dpattern
    cancelling paths      Effects along two paths may cancel in a gradient. So the gradient is also computed without the
                          paths through each layer in turn, and the sizes are averaged (GradDrop). Unlike in the paper,
                          plain attribution counts instead if it is larger than this average

The score of a head is the largest of the scores of its output, queries, keys and values. Scores have no signs, and like
every attribution, they only rank components.

Shapes: B pairs (each in both directions), T tokens, H heads, G key-value heads, I inputs of a head, L layers.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from lab.probing.answered import Answered, Runs
from lab.probing.batching import batches
from lab.probing.bridge import Hook, Subject
from lab.probing.components import Component
from lab.probing.contrast import Contrasting
from lab.probing.measured import Measured, max_abs_over_directions

INPUTS = ("output", "q", "k", "v")
_BATCH = 64
"""Rows per pass with gradients."""


def atp_star(subject: Subject, pairs: Contrasting) -> tuple[Measured, Measured]:
    """The sizes of the attributed effects of heads (axes direction, layer, head, input) and of MLPs (axes direction,
    layer).

    Takes one pass with gradients, another one for each layer, and two short passes per layer for its patterns. Raises
    the same errors as `Answered.of_right_pairs`.
    """
    answered = Answered.of_right_pairs(subject, pairs, _BATCH)
    sizes = [_sizes(answered, rows) for rows in batches(len(answered), _BATCH)]
    head_BLHI, mlp_BL = (torch.cat(parts).numpy() for parts in zip(*sizes, strict=True))
    layers, name = range(subject.layers), "attributed size of effect"
    axes = {"layer": layers, "head": range(subject.heads), "input": INPUTS}
    return (
        answered.effects_of_moves(f"{name} of a head", axes, head_BLHI).effect,
        answered.effects_of_moves(f"{name} of an MLP", {"layer": layers}, mlp_BL).effect,
    )


def strongest(heads: Measured, mlps: Measured) -> dict[Component, float]:
    """The largest effect of each component, over both directions and all inputs of a head."""
    by_head, by_mlp = max_abs_over_directions(heads.value).max(-1), max_abs_over_directions(mlps.value)
    found = {Component("head", *index): float(by_head[index]) for index in np.ndindex(by_head.shape)}
    return found | {Component("mlp", layer): float(value) for layer, value in enumerate(by_mlp)}


def _sizes(answered: Answered, rows: slice) -> tuple[torch.Tensor, torch.Tensor]:
    """The sizes for heads (B, L, H, I) and for MLPs (B, L), in logits."""
    layers = range(answered.subject.layers)
    points = ("hook_q", "hook_k", "hook_v", "hook_z", "hook_pattern")
    names = [*(f"blocks.{layer}.attn.{end}" for layer in layers for end in points),
             *(f"blocks.{layer}.hook_mlp_out" for layer in layers)]  # fmt: skip
    with torch.inference_mode():
        runs = Runs(answered, rows, names, names)
        moved = {name: (runs.source[name] - runs.base[name]).float() for name in names}
        for layer in layers:
            moved |= {(name, layer): _pattern(runs, layer, name) for name in ("q", "k")}
            moved["v", layer] = _values(runs, layer, moved[f"blocks.{layer}.attn.hook_v"])
    by_cut = [_attributed(answered.subject, runs, moved, names, cut) for cut in (None, *layers)]
    whole, *cut = by_cut
    sized = [part.abs() for part in whole]
    for kind in range(2):  # heads, then MLPs; for a component, runs in which its own layer is cut do not count
        for layer in layers:
            others = [one[kind][:, layer].abs() for index, one in enumerate(cut) if index != layer]
            if others:
                mean = torch.stack(others).mean(0)
                sized[kind][:, layer] = torch.maximum(sized[kind][:, layer], mean)
    return sized[0].cpu(), sized[1].cpu()


def _pattern(runs: Runs, layer: int, name: str) -> torch.Tensor:
    """How a layer's attention pattern changes with the source's queries or keys, (B, H, T, T)."""
    point, pattern = f"blocks.{layer}.attn.hook_{name}", f"blocks.{layer}.attn.hook_pattern"
    found = runs.within(layer, [pattern], [(point, lambda activation, hook: runs.source[point])])
    return (found[pattern] - runs.base[pattern]).float()


def _values(runs: Runs, layer: int, moved_BTGZ: torch.Tensor) -> torch.Tensor:
    """How each head's output changes with the source's values and the base's pattern, (B, T, H, Z)."""
    pattern_BHTT = runs.base[f"blocks.{layer}.attn.hook_pattern"].float()
    moved_BTHZ = moved_BTGZ.repeat_interleave(pattern_BHTT.shape[1] // moved_BTGZ.shape[2], dim=2)
    return torch.einsum("bhqt,bthz->bqhz", pattern_BHTT, moved_BTHZ)


def _attributed(
    subject: Subject, runs: Runs, moved: dict[Any, torch.Tensor], names: Sequence[str], cut: int | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Effects with signs, (B, L, H, I) and (B, L). `cut`: a layer through which no gradient passes."""
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
