"""Attention scores of a model from scratch (`lab.scratch.llama`), with its keys at any position ids.

Shapes: B rows, H heads, Q queries, K keys, D width of a head.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import torch
from torch import nn
from torch.nn.functional import softmax
from transformers import AttentionInterface
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb, repeat_kv

from lab.errors import ModelError
from lab.parts.part import Step
from lab.scratch.llama import NumberLlama
from lab.trees.paths import PATH_ATTENTION, path_attention


class Scores:
    """The scores of a layer. Queries and keys are given as they enter attention, rotated by their ids if the model
    rotates them."""

    def __init__(
        self,
        model: NumberLlama,
        layer: int,
        query_BHQD: torch.Tensor,
        key_BHKD: torch.Tensor,
        positions_BQ: torch.Tensor,
        scaling: float,
    ) -> None:
        self.model, self.layer, self.scaling = model, layer, scaling
        self.query_BHQD, self.key_BHKD = (self.rotated(states, -positions_BQ) for states in (query_BHQD, key_BHKD))

    def rotated(self, states_BHQD: torch.Tensor, positions_BQ: torch.Tensor) -> torch.Tensor:
        cosines, sines = self.model.model.rotary_emb(states_BHQD, positions_BQ)
        return apply_rotary_pos_emb(states_BHQD, states_BHQD, cosines, sines)[0]

    def at(self, positions_BQ: torch.Tensor, positions_BK: torch.Tensor, bias: bool = True) -> torch.Tensor:
        """The scores (B, H, Q, K) if queries and keys have these ids; one row of states counts for all rows of ids.

        `bias`: whether the model's bias of positions is part of them.
        """
        query_BHQD = self.rotated(self.query_BHQD.expand(len(positions_BQ), -1, -1, -1), positions_BQ)
        key_BHKD = self.rotated(self.key_BHKD.expand(len(positions_BK), -1, -1, -1), positions_BK)
        scores_BHQK = query_BHQD @ key_BHKD.transpose(-1, -2) * self.scaling
        positions = self.model.positions_of(positions_BQ, positions_BK)
        visible = torch.ones_like(positions.distances_BQK, dtype=torch.bool)[:, None]
        step = Step(query_BHQD, self.model.model.rotary_emb, self.model.training, visible, positions)
        mask_BHQK = torch.zeros_like(scores_BHQK)
        for kind in self.model.parts:
            act = self.model.parts[kind].act({}, step)
            if act is not None and act.rescores:
                given = query_BHQD, key_BHKD, mask_BHQK, self.scaling
                scores_BHQK = act.scores(self.layer, scores_BHQK, *given)
            elif act is not None and bias:
                mask_BHQK = act.shared(mask_BHQK)
        return scores_BHQK + mask_BHQK


Rescored: TypeAlias = Callable[[Scores, torch.Tensor, torch.Tensor], torch.Tensor]
"""New scores (B, H, Q, K) of a layer, from its scores, its tokens (B, K), and its mask (B or 1, H or 1, Q, K): the
model's bias of positions, and -inf for hidden keys."""


@contextmanager
def rescored(model: NumberLlama, rescore: Rescored) -> Iterator[None]:
    """Within this context, all layers use the new scores. Call the model with its tokens as the only unnamed argument.

    Raises ModelError for a model with clipped distances or stick-breaking heads, whose scores are computed differently.
    """
    if {*model.parts} & {"clipped_distances", "stick_breaking"}:
        raise ModelError("scores are those of models without clipped_distances and stick_breaking")

    tokens: list[torch.Tensor] = []

    def attention(
        module: nn.Module,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attention_mask: torch.Tensor | None,
        scaling: float,
        position_ids: torch.Tensor,
        **others: Any,
    ) -> tuple[torch.Tensor, None]:
        key, value = (repeat_kv(states, module.num_key_value_groups) for states in (key, value))  # type: ignore[arg-type]
        scores = Scores(model, module.layer_idx, query, key, position_ids, scaling)  # type: ignore[arg-type]
        mask = _hiding(attention_mask, query)
        weights_BHQK = softmax(rescore(scores, tokens[0], mask), -1, dtype=torch.float32).to(value.dtype)
        return (weights_BHQK @ value).transpose(1, 2).contiguous(), None

    def see(_: nn.Module, arguments: tuple[torch.Tensor, ...], __: dict[str, Any]) -> None:
        tokens[:] = arguments

    usual = model.config._attn_implementation
    AttentionInterface.register(PATH_ATTENTION, attention)
    hook = model.register_forward_pre_hook(see, with_kwargs=True)
    model.config._attn_implementation = PATH_ATTENTION
    try:
        yield
    finally:
        hook.remove()
        model.config._attn_implementation = usual
        AttentionInterface.register(PATH_ATTENTION, path_attention)


def _hiding(mask: torch.Tensor | None, query_BHTD: torch.Tensor) -> torch.Tensor:
    """The mask of whole rows, with -inf for hidden keys."""
    if mask is None:
        mask = query_BHTD.new_ones(query_BHTD.shape[2], query_BHTD.shape[2]).tril().bool()[None, None]
    if mask.dtype == torch.bool:
        return torch.zeros(mask.shape).masked_fill(~mask, float("-inf"))
    return mask.masked_fill(mask <= torch.finfo(mask.dtype).min / 2, float("-inf"))
