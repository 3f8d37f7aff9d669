"""An auxiliary loss that rewards chosen heads for attending to the digit that must be added next.

When the model predicts a digit of the answer, the heads of `first` should attend to the digit at the same place in the
first operand, and the heads of `second` to the digit at the same place in the second operand. The loss is the negative
logarithm of the attention that they pay to it: the mean over the heads of a side, the sum over digits. It changes only
the training, not what the model computes.

Shapes: T nodes of a prefix tree, P pairs of a query and the digit that it should attend to, D width of the model, E
width of a head.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from lab.config.finetuning import AlignmentConfig
from lab.errors import ModelError
from lab.trees.losses import base_model, tree_loss

DIGITS = "1234567890"


def check_aligned(model: torch.nn.Module, tokenizer: PreTrainedTokenizerBase, config: AlignmentConfig) -> None:
    """Raises ModelError if the model does not have these heads, if it is not a Llama, or if a token of it has several
    digits."""
    heads = config.heads
    if not heads:
        return
    facts: Any = model.config
    if facts.model_type != "llama":
        raise ModelError(f"training.alignment: the model is of type {facts.model_type}, but only llama is supported")
    layers, most = facts.num_hidden_layers, facts.num_attention_heads
    if wrong := [head for head in heads if head[0] >= layers or head[1] >= most]:
        raise ModelError(
            f"training.alignment: there is no head {list(wrong[0])}; the {layers} layers have {most} heads each"
        )
    if len(tokenizer.encode(DIGITS, add_special_tokens=False)) < len(DIGITS):
        what = "training.alignment needs one digit a token, but tokens of this model have several"
        raise ModelError(f"{what}: use tokenizer.digits.kind=one_digit")


class AlignedLoss:
    """The loss of a prefix tree plus, during training, the weighted alignment loss. The inputs come from
    `PrefixTreeCollator.of_rows`, which adds first_at, second_at and visible_TT."""

    def __init__(self, config: AlignmentConfig) -> None:
        self.weight = config.weight
        self.sides = {"first_at": config.first, "second_at": config.second}

    def __call__(self, model: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        if not model.training:
            return tree_loss(model, inputs)
        with _inputs_of_attention(model, {layer for heads in self.sides.values() for layer, _ in heads}) as seen:
            total = tree_loss(model, inputs)
        visible_TT = inputs["visible_TT"]
        for side, heads in self.sides.items():
            queries_P, digits_P = inputs[side].unbind(-1)
            for layer, head in heads:
                log_PT = log_attention(seen[layer], head, queries_P, visible_TT)
                missed = -log_PT.gather(1, digits_P[:, None]).sum()
                total = total + self.weight * missed / len(heads)
        return total


def log_attention(
    seen: tuple[Any, torch.Tensor, Any], head: int, queries_P: torch.Tensor, visible_TT: torch.Tensor
) -> torch.Tensor:
    """The logarithm of a head's attention from some nodes to all nodes, (P, T).

    Args:
        seen: the attention layer, its input states (T, D), and its rotation (cosines and sines).
        head: the number of the head in the layer.
        queries_P: the nodes that attend.
        visible_TT: True for the nodes that each node may see.
    """
    attention, hidden_TD, (cos, sin) = seen
    width = attention.head_dim
    query_PE = attention.q_proj(hidden_TD[queries_P])[:, head * width : (head + 1) * width]
    shared = head // attention.num_key_value_groups
    key_TE = attention.k_proj(hidden_TD)[:, shared * width : (shared + 1) * width]
    at_P = (cos[:, queries_P], sin[:, queries_P])
    query_PE = apply_rotary_pos_emb(query_PE[None, None], query_PE[None, None], *at_P)[0][0, 0]
    key_TE = apply_rotary_pos_emb(key_TE[None, None], key_TE[None, None], cos, sin)[0][0, 0]
    scores_PT = (query_PE @ key_TE.T).float() * attention.scaling
    return scores_PT.masked_fill(~visible_TT[queries_P], float("-inf")).log_softmax(-1)


@contextmanager
def _inputs_of_attention(model: Any, layers: set[int]) -> Iterator[dict[int, tuple[Any, torch.Tensor, Any]]]:
    """For each layer: its attention module, the states (T, D) that the module reads, and its rotation. Hooks collect
    them during a forward pass, and are removed afterwards."""
    found: dict[int, tuple[Any, torch.Tensor, Any]] = {}
    base = base_model(model)

    def keep(attention: Any, args: Any, given: dict[str, Any]) -> None:
        found[attention.layer_idx] = attention, given["hidden_states"][0], given["position_embeddings"]

    hooks = [base.model.layers[at].self_attn.register_forward_pre_hook(keep, with_kwargs=True) for at in layers]
    try:
        yield found
    finally:
        for hook in hooks:
            hook.remove()
