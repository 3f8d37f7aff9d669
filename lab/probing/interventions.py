"""Hooks that change what a model computes, and functions that read what it computes. `Subject.logits` takes hooks, and
removes them after the run.

In each layer, the residual stream can be changed at three sites: pre (before attention), mid (between attention and the
MLP) and post (after the MLP). In version 4.3 of TransformerLens, blocks.N.hook_resid_mid is an alias of the MLP's
input: a change there never reaches the residual stream itself (tests check this). So `residual` changes the stream at
mid by changing what attention adds to it.

Shapes: B sums, T tokens, D width of the model, H heads, Z width of a head, P token positions in each row,
G layers and sites, K columns.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch

from lab.probing.addition.positions import Sums
from lab.probing.batching import batches
from lab.probing.bridge import Hook, Subject
from lab.probing.components import Site

Change: TypeAlias = Callable[[torch.Tensor], torch.Tensor]


def residual(layer: int, site: Site, change: Change) -> list[Hook]:
    """Hooks that replace the residual stream x (B, T, D) by `change(x)`.

    To change a layer at both pre and mid, list the hooks for pre first: those for mid start from their result.
    """
    block = f"blocks.{layer}"
    if site != "mid":
        return [(_stream(layer, site), lambda stream_BTD, hook: change(stream_BTD))]
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
    """The residual stream (B, T, D) at all tokens, for each wanted layer and site."""
    names = [_stream(*location) for location in wanted]
    _, found = subject.activations(sums, names, hooks)
    return {location: found[name] for location, name in zip(wanted, names, strict=True)}


@torch.inference_mode()
def read_at(
    subject: Subject, sums: Sums, names: Sequence[str], at_BP: torch.Tensor, batch_size: int
) -> list[torch.Tensor]:
    """The activation of each hook point at the positions of each row, (B, P, ...), in float32 on the CPU. Values for
    positions below 0, which stand for no token, are meaningless."""
    parts = []
    for rows in batches(len(sums), batch_size):
        _, found = subject.activations(sums.part(rows), names)
        parts.append([take(found[name], at_BP[rows]).float().cpu() for name in names])
    return [torch.cat(of_name) for of_name in zip(*parts, strict=True)]


@torch.inference_mode(False)  # so that the streams can take part in computations with gradients
def read_queries(
    subject: Subject, sums: Sums, locations: Sequence[tuple[int, Site]], columns: Sequence[int], batch_size: int
) -> torch.Tensor:
    """The residual stream at q_k, for some layers and sites and some columns k, (G, B, K, D), in float32 on the CPU.

    Rows of sums without a digit in the column are meaningless; the caller leaves them out.
    """
    names = [_stream(*location) for location in locations]
    return torch.stack(read_at(subject, sums, names, sums.query_at_BK[:, list(columns)], batch_size)).clone()


def _stream(layer: int, site: Site) -> str:
    return f"blocks.{layer}.hook_resid_{site}"


def heads(layer: int, change: Change) -> Hook:
    """A hook that changes the outputs of a layer's heads, (B, T, H, Z), before the output projection."""
    return f"blocks.{layer}.attn.hook_z", lambda z_BTHZ, hook: change(z_BTHZ)


def pattern(layer: int, change: Change) -> Hook:
    """A hook that changes a layer's attention patterns, (B, H, T, T); the row of each query sums to one."""
    return f"blocks.{layer}.attn.hook_pattern", lambda pattern_BHTT, hook: change(pattern_BHTT)


def said_digits(
    subject: Subject, sums: Sums, column: int, hooks: Callable[[slice], Sequence[Hook]], batch_size: int = 64
) -> np.ndarray:
    """The most likely digit (B,) at q_k, k = `column`, of a model with hooks; meaningless for sums without this
    column. `hooks`: a function that returns the hooks for a slice of the sums."""
    ids, found = torch.tensor(subject.writer.digit_ids()), []
    for rows in batches(len(sums), batch_size):
        part = sums.part(rows)
        query_BV = take(subject.logits(part, hooks(rows)), part.query_at_BK[:, column, None])[:, 0]
        found.append(query_BV[:, ids.to(query_BV.device)].argmax(-1).cpu().numpy())
    return np.concatenate(found)


def only_logits_at(at_BP: torch.Tensor) -> Hook:
    """A hook that computes logits only at the positions of each row, (B, P, V): those of all tokens are often the
    largest tensor of a run."""
    return "unembed.hook_in", lambda stream_BTD, hook: take(stream_BTD, at_BP)


def only_at(at_BP: torch.Tensor, change: Change) -> Change:
    """A change of an activation (B, T, ...) that affects only the positions of each row: `change` gets and returns
    (B, P, ...)."""
    return lambda activation: put(activation, at_BP, change(take(activation, at_BP)))


def put(into: torch.Tensor, at_BP: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """A copy of `into` (B, T, ...) with `values` (B, P, ...) at the positions of each row, except those below 0."""
    at_BP = at_BP.to(into.device)
    row_B1 = torch.arange(len(into), device=into.device)[:, None].expand_as(at_BP)
    there_BP = at_BP >= 0
    changed = into.clone()
    changed[row_B1[there_BP], at_BP[there_BP]] = values[there_BP].to(into.dtype)
    return changed


def take(from_: torch.Tensor, at_BP: torch.Tensor) -> torch.Tensor:
    """The elements of `from_` (B, T, ...) at the positions of each row, (B, P, ...). A position below 0 gives the
    element of token 0."""
    row_B1 = torch.arange(len(from_), device=from_.device)[:, None]
    return from_[row_B1, at_BP.clamp(min=0).to(from_.device)]
