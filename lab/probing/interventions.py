"""Hooks that change what a model computes, for `Subject.logits`, which takes them off again.

The residual stream of a layer is written at three sites: pre (before attention), mid (after it) and post (after the
MLP). TransformerLens' blocks.N.hook_resid_mid is an alias of the MLP's input: what is written there never reaches the
stream itself. So mid is written by changing what attention adds (verified with version 4.3; tests keep watch).

Shapes: B sums, T tokens, D width of the model, H heads, Z width of a head, P places of each row.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import torch

from lab.probing.bridge import Hook, Subject
from lab.probing.positions import Sums

Site: TypeAlias = Literal["pre", "mid", "post"]
SITES: tuple[Site, ...] = ("pre", "mid", "post")
Change: TypeAlias = Callable[[torch.Tensor], torch.Tensor]


def residual(layer: int, site: Site, change: Change) -> list[Hook]:
    """Hooks that replace the stream (B, T, D) by `change` of it, for everything that comes after.

    Of changes at one layer, that at pre should be listed before that at mid, which begins with what it finds at pre.
    """
    block = f"blocks.{layer}"
    if site != "mid":
        return [(f"{block}.hook_resid_{site}", lambda stream_BTD, hook: change(stream_BTD))]
    before: list[torch.Tensor] = []

    def remember(stream_BTD: torch.Tensor, hook: Any) -> torch.Tensor:
        before[:] = [stream_BTD]
        return stream_BTD

    def add(added_BTD: torch.Tensor, hook: Any) -> torch.Tensor:
        return change(before[0] + added_BTD) - before[0]

    return [(f"{block}.hook_resid_pre", remember), (f"{block}.hook_attn_out", add)]


def read_residuals(
    subject: Subject, sums: Sums, wanted: Sequence[tuple[int, Site]], hooks: Sequence[Hook] = ()
) -> dict[tuple[int, Site], torch.Tensor]:
    """The stream (B, T, D) at each layer and site that is wanted."""
    names = [f"blocks.{layer}.hook_resid_{site}" for layer, site in wanted]
    _, found = subject.activations(sums, names, hooks)
    return {place: found[name] for place, name in zip(wanted, names, strict=True)}


def heads(layer: int, change: Change) -> Hook:
    """A hook that replaces what the heads hand on, (B, T, H, Z) before the output projection."""
    return f"blocks.{layer}.attn.hook_z", lambda z_BTHZ, hook: change(z_BTHZ)


def pattern(layer: int, change: Change) -> Hook:
    """A hook that replaces where the heads look, (B, H, T, T): rows of queries that sum to one."""
    return f"blocks.{layer}.attn.hook_pattern", lambda pattern_BHTT, hook: change(pattern_BHTT)


def put(into: torch.Tensor, at_BP: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """A copy of (B, T, ...) that has `values` (B, P, ...) at the places of each row; places below 0 are left out."""
    at_BP = at_BP.to(into.device)
    row_B1 = torch.arange(len(into), device=into.device)[:, None].expand_as(at_BP)
    there_BP = at_BP >= 0
    changed = into.clone()
    changed[row_B1[there_BP], at_BP[there_BP]] = values[there_BP].to(into.dtype)
    return changed


def take(from_: torch.Tensor, at_BP: torch.Tensor) -> torch.Tensor:
    """(B, P, ...) out of (B, T, ...): what stands at the places of each row; places below 0 give that of token 0."""
    row_B1 = torch.arange(len(from_), device=from_.device)[:, None]
    return from_[row_B1, at_BP.clamp(min=0).to(from_.device)]
