"""Hooks that change what a model computes, for `Subject.logits`, which removes them again.

The residual stream of a layer is written at three sites: pre (before attention), mid (after it) and post (after the
MLP). TransformerLens' blocks.N.hook_resid_mid is an alias of the MLP's input: what is written there never reaches the
stream itself. So mid is written by changing what attention adds (found with version 4.3, and checked by tests).

Shapes: B sums, T tokens, D width of the model, H heads, Z width of a head, P places of each row.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import torch

from lab.probing.bridge import Hook, Subject
from lab.probing.positions import Sums, batches

Site: TypeAlias = Literal["pre", "mid", "post"]
SITES: tuple[Site, ...] = ("pre", "mid", "post")
Change: TypeAlias = Callable[[torch.Tensor], torch.Tensor]


def residual(layer: int, site: Site, change: Change) -> list[Hook]:
    """Hooks that replace the stream (B, T, D) by `change` of it, for everything that comes after.

    If there are changes at pre and at mid of the same layer, list that at pre first, because mid starts from pre.
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
    """The stream (B, T, D) at each wanted layer and site."""
    names = [f"blocks.{layer}.hook_resid_{site}" for layer, site in wanted]
    _, found = subject.activations(sums, names, hooks)
    return {place: found[name] for place, name in zip(wanted, names, strict=True)}


@torch.inference_mode()
def read_at(
    subject: Subject, sums: Sums, names: Sequence[str], at_BP: torch.Tensor, batch_size: int
) -> list[torch.Tensor]:
    """The activation of each hook point at the places of each row, (B, P, ...), in float32 on the CPU. Rows of sums
    without a place are meaningless."""
    parts = []
    for rows in batches(len(sums), batch_size):
        _, found = subject.activations(sums.part(rows), names)
        parts.append([take(found[name], at_BP[rows]).float().cpu() for name in names])
    return [torch.cat(of_name) for of_name in zip(*parts, strict=True)]


def heads(layer: int, change: Change) -> Hook:
    """A hook that replaces the outputs of the heads before the output projection, (B, T, H, Z)."""
    return f"blocks.{layer}.attn.hook_z", lambda z_BTHZ, hook: change(z_BTHZ)


def pattern(layer: int, change: Change) -> Hook:
    """A hook that replaces the attention patterns, (B, H, T, T); the row of each query sums to one."""
    return f"blocks.{layer}.attn.hook_pattern", lambda pattern_BHTT, hook: change(pattern_BHTT)


def said_digits(
    subject: Subject, sums: Sums, column: int, hooks: Callable[[slice], Sequence[Hook]], batch_size: int = 64
) -> np.ndarray:
    """The most likely digit at q_k of each sum, (B,), while a model is changed; anything for sums without the column.

    Args:
        subject: the model.
        sums: what it reads.
        column: k.
        hooks: the changes for a part of the sums.
        batch_size: sums of a pass.
    """
    ids, found = torch.tensor(subject.writer.digit_ids()), []
    for rows in batches(len(sums), batch_size):
        part = sums.part(rows)
        query_BV = take(subject.logits(part, hooks(rows)), part.query_at_BK[:, column, None])[:, 0]
        found.append(query_BV[:, ids.to(query_BV.device)].argmax(-1).cpu().numpy())
    return np.concatenate(found)


def put(into: torch.Tensor, at_BP: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """A copy of (B, T, ...) with `values` (B, P, ...) at the places of each row; places below 0 are left out."""
    at_BP = at_BP.to(into.device)
    row_B1 = torch.arange(len(into), device=into.device)[:, None].expand_as(at_BP)
    there_BP = at_BP >= 0
    changed = into.clone()
    changed[row_B1[there_BP], at_BP[there_BP]] = values[there_BP].to(into.dtype)
    return changed


def take(from_: torch.Tensor, at_BP: torch.Tensor) -> torch.Tensor:
    """The elements of (B, T, ...) at the places of each row, (B, P, ...); a place below 0 gives the element of token
    0."""
    row_B1 = torch.arange(len(from_), device=from_.device)[:, None]
    return from_[row_B1, at_BP.clamp(min=0).to(from_.device)]
