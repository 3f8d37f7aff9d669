"""Attention weights that probing reads and changes.

`lab.probing.own_hooks` puts a function under WATCH into the attention of each layer of a model that it opens. Attention
that computes its weights passes them through `watched`; what it uses then is what the function returns.

Shapes: B rows, H heads, G key-value heads, Q queries, K keys, D width of a head.
"""

from typing import Any

import torch

WATCH = "watch_pattern"


def is_watched(module: Any) -> bool:
    """Whether the weights of this attention are read or changed."""
    return WATCH in vars(module)


def watched(module: Any, weights_BHQK: torch.Tensor) -> torch.Tensor:
    """The weights that this attention should use."""
    return vars(module)[WATCH](weights_BHQK) if is_watched(module) else weights_BHQK


def watched_attention(
    module: Any,
    query_BHQD: torch.Tensor,
    key_BGKD: torch.Tensor,
    value_BGKD: torch.Tensor,
    mask_BHQK: torch.Tensor | None,
    scale: float,
) -> torch.Tensor:
    """Softmax attention whose weights are watched, (B, Q, H, D). The mask is added to the scores, or says which keys
    are visible; without one, keys up to the query are."""
    groups = query_BHQD.shape[1] // key_BGKD.shape[1]
    key_BHKD, value_BHKD = (states.repeat_interleave(groups, 1) for states in (key_BGKD, value_BGKD))
    scores_BHQK = query_BHQD @ key_BHKD.transpose(2, 3) * scale
    if mask_BHQK is None:
        queries, keys = scores_BHQK.shape[2:]
        mask_BHQK = torch.ones(queries, keys, dtype=torch.bool, device=scores_BHQK.device).tril(keys - queries)
    if mask_BHQK.dtype == torch.bool:
        scores_BHQK = scores_BHQK.masked_fill(~mask_BHQK, float("-inf"))
    else:
        scores_BHQK = scores_BHQK + mask_BHQK[..., : scores_BHQK.shape[-1]]
    weights_BHQK = scores_BHQK.softmax(-1, dtype=torch.float32).to(value_BHKD.dtype)
    return (watched(module, weights_BHQK) @ value_BHKD).transpose(1, 2).contiguous()
