"""Makes changes of attention patterns count in every architecture.

TransformerLens computes the attention of most architectures itself, and a hook on `attn.hook_pattern` then changes what
heads write. For some (GPT-J, GPT-Neo, OPT, XGLM), it leaves the attention to the model, and the hook gets a copy of the
weights after they were used, or nothing at all: a change is lost. There are two places where such a model can be
opened:

    attention function    models that take theirs from transformers' interface get one that calls the hook
    dropout of weights    older models pass their weights through a module for dropout, just before they are used

Shapes: B rows, H heads, Q queries, K keys, Z width of a head.
"""

from collections.abc import Iterable
from functools import partial
from typing import Any

import torch
from torch import nn
from transformers import AttentionInterface
from transformers.masking_utils import AttentionMaskInterface, eager_mask

from lab.parts.watching import WATCH, watched_attention

WATCHED = "lab_watched"
"""The name of attention whose weights are watched (lab/parts/watching.py), for `set_attn_implementation`."""
_DROPOUT = "attn_dropout"


def make_live(model: Any, attentions: Iterable[Any]) -> None:
    """Lets the hooks on the patterns of these layers change what the model computes, if there is a place for it.

    Args:
        model: the model that was opened.
        attentions: the parts of the bridge that stand for the attention of a layer.
    """
    interface = bool(getattr(model, "_supports_attention_backend", False))
    for attention in attentions:
        dropout = getattr(attention.original_component, _DROPOUT, None)
        if isinstance(dropout, nn.Module):
            dropout.register_forward_hook(partial(_dropped_out, point=attention.hook_pattern))
        elif interface:
            vars(attention.original_component)[WATCH] = attention.hook_pattern
        else:
            continue
        # otherwise the hook would be called once more, for weights that the model returns
        vars(attention)["_fire_post_hoc_hook"] = partial(_only_others, attention._fire_post_hoc_hook)
    if interface:
        model.set_attn_implementation(WATCHED)


def _dropped_out(module: nn.Module, given: Any, pattern_BHQK: torch.Tensor, point: nn.Module) -> torch.Tensor:
    return point(pattern_BHQK)


def _only_others(fire: Any, point: nn.Module, weights: torch.Tensor, label: str) -> torch.Tensor:
    return weights if label == "hook_pattern" else fire(point, weights, label)


def _attention(
    module: Any,
    query_BHQZ: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """Softmax attention whose weights are watched. It returns no weights: the bridge would call the hook again."""
    scale = query_BHQZ.shape[-1] ** -0.5 if scaling is None else scaling
    return watched_attention(module, query_BHQZ, key, value, attention_mask, scale), None


AttentionInterface.register(WATCHED, _attention)
AttentionMaskInterface.register(WATCHED, eager_mask)
