"""Computes the logits of many tiny adders at once, from lookup tables of attention scores.

There are ten tokens, so an attention score depends only on the query's token, the key's token and the distance between
them: ten by ten by 34 numbers for each seed, instead of one for each pair of positions of each problem. All seeds see
the same problems, so attention's sums are products of these tables with one matrix, which says which token stands where
and is the same for all seeds. Seeds are the last dimension of tables, because processors compute many neighbouring
numbers at a time, and the first dimension if each seed has its own matrix product.

Shapes: S seeds, B problems, A answers, N queries (B A), T distances, Q and K tokens of queries and of keys (10, as V),
H heads, D width, W width of a value, F hidden units, O outputs of a linear map; a dimension of size 2 is called 2.
"""

import math
from collections.abc import Mapping

import torch

LEAST = -60.0
"""The lowest score, relative to the largest; lower scores are set to it. Its weight is negligible but never 0, so that
one can always divide by a sum of weights."""


def logits_of_many(weights: Mapping[str, torch.Tensor], heads: int, ids_BT: torch.Tensor, answers: int) -> torch.Tensor:
    """(B, A, V, S): what TinyAdder (models.py) gives for each seed.

    weights: TinyAdder's parameters by their names, each with seeds as its last dimension, and the period (S, or 1).
    """
    digits_VDS = weights["digits_VD"]
    looks_NX, asking_N = looks(ids_BT, answers)
    shares_QKTHS, values_VHWS = tables(weights, heads, ids_BT.shape[1])
    counted_VHOS = torch.cat([torch.ones_like(values_VHWS[:, :, :1]), values_VHWS], dim=2)
    summands_QXY = (shares_QKTHS[..., None, :] * counted_VHOS[:, None]).flatten(3).flatten(1, 2)
    order_N = asking_N.argsort(stable=True)
    parts = looks_NX[order_N].split(asking_N.bincount(minlength=len(digits_VDS)).tolist())
    sums_NY = torch.cat([part @ summands for part, summands in zip(parts, summands_QXY, strict=True)])
    sums_SHON = sums_NY[order_N.argsort()].T.unflatten(0, counted_VHOS.shape[1:]).movedim(2, 0)
    means_SXN = (sums_SHON[:, :, 1:] / sums_SHON[:, :, :1]).flatten(1, 2)
    first = {name: weight.movedim(-1, 0) for name, weight in weights.items()}  # a product of matrices for each seed
    x_SDN = first["digits_VD"].mT[:, :, asking_N] + first["output.weight"] @ means_SXN
    normed_SDN = normed(x_SDN, weights, 1)
    up_SFN = first["up.weight"] @ normed_SDN
    gate_SFN = first["gate.weight"] @ normed_SDN if "gate.weight" in first else up_SFN
    down_SDF = first.get("down.weight", -first["up.weight"].mT)
    x_SDN = x_SDN + down_SDF @ (torch.nn.functional.silu(gate_SFN) * up_SFN)
    logits_SVN = first.get("head.weight", first["digits_VD"]) @ normed(x_SDN, weights, 2)
    return logits_SVN.permute(2, 1, 0).unflatten(0, (len(ids_BT), answers))


def looks(ids_BT: torch.Tensor, answers: int) -> tuple[torch.Tensor, torch.Tensor]:
    """For each query: which token stands at which distance, as ones and zeros (N, 10 T), and the query's own token
    (N,)."""
    tokens = ids_BT.shape[1]
    positions_T = torch.arange(tokens)
    distances_AT = positions_T[-answers:, None] - positions_T
    places_BAT = ids_BT[:, None] * tokens + distances_AT.clamp(min=0)
    seen_BAT = (distances_AT >= 0).float().expand(places_BAT.shape)
    looks_NX = torch.zeros(len(ids_BT) * answers, 10 * tokens)
    looks_NX.scatter_add_(1, places_BAT.flatten(0, 1), seen_BAT.flatten(0, 1))
    return looks_NX, ids_BT[:, -answers:].flatten()


def tables(weights: Mapping[str, torch.Tensor], heads: int, tokens: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention weights before they are divided by their sum (Q, K, T, H, S), and values (V, H, W, S)."""
    normed_SDV = normed(weights["digits_VD"].permute(2, 1, 0), weights, 0)
    q_VH2S, k_VH2S, values_VHWS = (
        (weights[f"{name}.weight"].movedim(-1, 0) @ normed_SDV).permute(2, 1, 0).unflatten(1, (heads, -1))
        for name in ("query", "key", "value")
    )
    angles_TS = torch.arange(tokens)[:, None] * (2 * math.pi / weights["period"])
    q_Q1H2S = q_VH2S[:, None] / math.sqrt(2)
    along_QKHS = (q_Q1H2S * k_VH2S).sum(3)
    across_QKHS = q_Q1H2S[:, :, :, 0] * k_VH2S[:, :, 1] - q_Q1H2S[:, :, :, 1] * k_VH2S[:, :, 0]
    turned = along_QKHS[:, :, None] * angles_TS.cos()[:, None], across_QKHS[:, :, None] * angles_TS.sin()[:, None]
    largest_QKHS = (along_QKHS**2 + across_QKHS**2).amax(1, keepdim=True).sqrt().detach()
    return (turned[0] + turned[1] - largest_QKHS[:, :, None]).clamp(min=LEAST).exp(), values_VHWS


def normed(x_SDN: torch.Tensor, weights: Mapping[str, torch.Tensor], which: int) -> torch.Tensor:
    """The norm number `which` of streams (S, D, N); also of the ten tokens, with N = V."""
    normed_SDN = x_SDN * torch.rsqrt((x_SDN * x_SDN).mean(1, keepdim=True) + 1e-6)
    gains_NDS = weights.get("gains_ND", ())
    own = which - 3 + len(gains_NDS)
    return normed_SDN * gains_NDS[own].T[:, :, None] if own >= 0 else normed_SDN
