"""The attention of models from scratch: relative keys or clipped distances, and stick-breaking heads beside those with
the usual softmax.

Shapes: B rows, H heads, Q queries, K keys, C distances, D width of a head.
"""

from typing import Any

import torch
from torch import nn
from torch.nn.functional import softmax
from transformers import AttentionInterface
from transformers.models.llama.modeling_llama import repeat_kv

from lab.parts.stick_breaking import Downward, sharpened, stick_breaking_weights
from lab.parts.watching import watched
from lab.scratch.clipped_distances import ClippedDistances


def number_attention(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor,
    scaling: float,
    relative_LHCD: torch.Tensor | None = None,
    distances_BQKC: torch.Tensor | None = None,
    downward: Downward | None = None,
    clipped: ClippedDistances | None = None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """Attention of a layer whose last heads use stick-breaking, and whose other heads have the usual softmax.

    Args:
        module: the attention layer; its config says how many heads use stick-breaking.
        query: (B, H, Q, D), of the last Q tokens of a row.
        key: (B, key-value heads, K, D).
        value: (B, key-value heads, K, D).
        attention_mask: what is added to the scores, (B or 1, H or 1, Q, K); -inf hides a key.
        scaling: factor on the products of queries and keys.
        relative_LHCD: the relative keys of all layers. Stick-breaking heads do not use theirs.
        distances_BQKC: the distance of each pair as a one-hot vector.
        downward: the order in which the last stick-breaking heads walk down the places, if any do.
        clipped: how rotated keys beyond the clipped distance are seen; None if distances are not clipped.

    Returns the output (B, Q, H, D), and None in place of the attention weights.
    """
    usual = query.shape[1] - module.config.stick_breaking  # type: ignore[union-attr]
    key, value = (repeat_kv(states, module.num_key_value_groups) for states in (key, value))  # type: ignore[arg-type]
    products_BHQK = query @ key.transpose(-1, -2) if clipped is None else clipped.products(query, key)
    scores_BHQK = products_BHQK * scaling
    mask_BHQK = attention_mask.expand(-1, query.shape[1], -1, -1)
    soft_BHQK = scores_BHQK[:, :usual] + mask_BHQK[:, :usual]
    if relative_LHCD is not None and distances_BQKC is not None:
        relative_HCD = relative_LHCD[module.layer_idx, :usual].to(query.dtype)  # type: ignore[index]
        wanted_BQHC = (query[:, :usual] @ relative_HCD.transpose(-1, -2) * scaling).transpose(1, 2)
        # a product with one-hot vectors instead of indexing, because its gradient is a matrix product, too; the
        # gradient of indexing is summed pair by pair
        soft_BHQK = soft_BHQK + (wanted_BQHC @ distances_BQKC.transpose(-1, -2).to(query.dtype)).transpose(1, 2)
    weights_BHQK = softmax(soft_BHQK, -1, dtype=torch.float32)
    if usual < query.shape[1]:
        back = query.shape[1] - module.config.downward  # type: ignore[union-attr]
        earlier_BHQK = _earlier(mask_BHQK[:, usual:back])
        nearest_BHQK = stick_breaking_weights(sharpened(scores_BHQK[:, usual:back], earlier_BHQK), earlier_BHQK)
        weights_BHQK = torch.cat([weights_BHQK, nearest_BHQK], 1)
        if downward is not None:
            below_BHQK = downward.weights(scores_BHQK[:, back:], _earlier(mask_BHQK[:, back:]))
            weights_BHQK = torch.cat([weights_BHQK, below_BHQK], 1)
    weights_BHQK = watched(module, weights_BHQK)
    return (weights_BHQK.to(value.dtype) @ value).transpose(1, 2).contiguous(), None


def _earlier(mask_BHQK: torch.Tensor) -> torch.Tensor:
    """The visible keys of each query except itself."""
    queries, keys = mask_BHQK.shape[2:]
    keys_K = torch.arange(keys, device=mask_BHQK.device)
    return (mask_BHQK > float("-inf")) & (keys_K != keys_K[keys - queries :, None])


NUMBER_ATTENTION = "lab_numbers"
AttentionInterface.register(NUMBER_ATTENTION, number_attention)
