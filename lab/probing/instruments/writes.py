"""What each component adds to the residual stream. The stream at any site is the sum of the writes before it:

    stream = embedding + heads and MLPs of earlier layers (+ the heads of its own layer, at "mid")

The write of a head is its output times its part of the output projection. Whatever else a layer adds, such as a bias,
is the same for every sum. So the difference between the streams of two sums is a sum of differences of writes.

Shapes: U components, B sums, T tokens, D width of the model, H heads, Z width of a head.
"""

from collections.abc import Mapping

import torch

from lab.errors import ModelError
from lab.probing.bridge import Subject
from lab.probing.components import Component, Site

EMBEDDING = Component("pre", 0)
"""The stream before the first layer."""
_TOLERANCE = 1e-2
"""How far what is computed from weights may be from the activation, as a share of its largest value."""


def writers(subject: Subject, layer: int, site: Site) -> list[Component]:
    """All components that write to the stream before this site, in the order of writing."""
    found = [EMBEDDING]
    for below in range(layer + 1):
        if below < layer or site != "pre":
            found += [Component("head", below, head) for head in range(subject.heads)]
        if below < layer or site == "post":
            found.append(Component("mlp", below))
    return found


def hook_points(subject: Subject) -> list[str]:
    """The hook points whose activations `written` needs."""
    ends = ("attn.hook_z", "hook_attn_out", "hook_mlp_out")
    return [EMBEDDING.hook_point, *(f"blocks.{layer}.{end}" for layer in range(subject.layers) for end in ends)]


def written(subject: Subject, component: Component, run: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """What a component writes in a run, (B, T, D)."""
    if component.kind != "head":
        return run[component.hook_point].float()
    return heads_written(subject, component.layer, run)[component.head]


def all_written(subject: Subject, run: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """What every component writes in a run, (U, B, T, D), in the order of `writers` after the last layer."""
    found = [run[EMBEDDING.hook_point].float()[None]]
    for layer in range(subject.layers):
        found += [heads_written(subject, layer, run), run[f"blocks.{layer}.hook_mlp_out"].float()[None]]
    return torch.cat(found)


def check_additive(subject: Subject, run: Mapping[str, torch.Tensor]) -> None:
    """Raises ModelError unless what each layer's attention adds is the sum of its heads' writes and a constant.

    This fails if adapters are not merged, or if a norm follows attention.
    """
    for layer in range(subject.layers):
        written_BTD = run[f"blocks.{layer}.hook_attn_out"].float()
        if gap := gap_beyond_a_constant(written_BTD, heads_written(subject, layer, run).sum(0)):
            raise ModelError(
                f"{subject.name}: heads of layer {layer} do not sum to what its attention writes (off by {gap:.2g}); "
                "adapters should be merged, and no norm should follow attention"
            )


def gap_beyond_a_constant(found: torch.Tensor, computed: torch.Tensor) -> float:
    """The largest difference of two activations (B, T, ...), apart from one that is the same for all sums and tokens; 0
    if it is within the tolerance."""
    rest = found - computed
    gap = float((rest - rest[:1, :1]).abs().max())
    return gap if gap > _TOLERANCE * max(1e-6, float(found.abs().max())) else 0.0


def heads_written(subject: Subject, layer: int, run: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """What each head of a layer writes, (H, B, T, D)."""
    out_HZD = subject.bridge.blocks[layer].attn.W_O.float()
    return torch.einsum("bthz,hzd->hbtd", run[f"blocks.{layer}.attn.hook_z"].float(), out_HZD)
