"""Many tiny adders at once, as tables.

There are ten tokens, so a score of attention depends on which asks, which is asked and how far back it stands: ten by
ten by 34 numbers a seed, instead of one for each pair of places of each problem. All seeds see the same problems, so
attention's sums are products of a matrix that says what stands where, the same for all, with these tables. Seeds come
last in every tensor, which is where processors take numbers many at a time.

Shapes: S seeds, B problems, A answers, N queries (B A), T distances, Q and K tokens that ask and are asked (10, as V),
H heads, D width, W width of a value, F hidden units, O numbers of a linear map; 2 is itself.
"""

import math
from collections.abc import Mapping

import torch

LEAST = -60.0
"""A score so far below the largest counts as that; its share is nothing, and is no zero to divide by."""


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
    sums_NHOS = sums_NY[order_N.argsort()].unflatten(1, counted_VHOS.shape[1:])
    means_NXS = (sums_NHOS[:, :, 1:] / sums_NHOS[:, :, :1]).flatten(1, 2)
    x_NDS = digits_VDS[asking_N] + mapped(means_NXS, weights["output.weight"])
    normed_NDS = normed(x_NDS, weights, 1)
    up_FDS = weights["up.weight"]
    up_NFS = mapped(normed_NDS, up_FDS)
    gate_NFS = mapped(normed_NDS, weights["gate.weight"]) if "gate.weight" in weights else up_NFS
    down_DFS = weights.get("down.weight", -up_FDS.transpose(0, 1))
    x_NDS = x_NDS + mapped(torch.nn.functional.silu(gate_NFS) * up_NFS, down_DFS)
    head_VDS = weights.get("head.weight", digits_VDS)
    return mapped(normed(x_NDS, weights, 2), head_VDS).unflatten(0, (len(ids_BT), answers))


def looks(ids_BT: torch.Tensor, answers: int) -> tuple[torch.Tensor, torch.Tensor]:
    """For each query, which token stands at which distance (N, 10 T), ones and zeros; and the token that asks (N,)."""
    tokens = ids_BT.shape[1]
    positions_T = torch.arange(tokens)
    distances_AT = positions_T[-answers:, None] - positions_T
    places_BAT = ids_BT[:, None] * tokens + distances_AT.clamp(min=0)
    seen_BAT = (distances_AT >= 0).float().expand(places_BAT.shape)
    looks_NX = torch.zeros(len(ids_BT) * answers, 10 * tokens)
    looks_NX.scatter_add_(1, places_BAT.flatten(0, 1), seen_BAT.flatten(0, 1))
    return looks_NX, ids_BT[:, -answers:].flatten()


def tables(weights: Mapping[str, torch.Tensor], heads: int, tokens: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention's shares before they are divided by their sum (Q, K, T, H, S), and values (V, H, W, S)."""
    normed_VDS = normed(weights["digits_VD"], weights, 0)
    q_VH2S, k_VH2S, values_VHWS = (
        mapped(normed_VDS, weights[f"{name}.weight"]).unflatten(1, (heads, -1)) for name in ("query", "key", "value")
    )
    angles_TS = torch.arange(tokens)[:, None] * (2 * math.pi / weights["period"])
    q_Q1H2S = q_VH2S[:, None] / math.sqrt(2)
    along_QKHS = (q_Q1H2S * k_VH2S).sum(3)
    across_QKHS = q_Q1H2S[:, :, :, 0] * k_VH2S[:, :, 1] - q_Q1H2S[:, :, :, 1] * k_VH2S[:, :, 0]
    turned = along_QKHS[:, :, None] * angles_TS.cos()[:, None], across_QKHS[:, :, None] * angles_TS.sin()[:, None]
    largest_QKHS = (along_QKHS**2 + across_QKHS**2).amax(1, keepdim=True).sqrt().detach()
    return (turned[0] + turned[1] - largest_QKHS[:, :, None]).clamp(min=LEAST).exp(), values_VHWS


def normed(x_NDS: torch.Tensor, weights: Mapping[str, torch.Tensor], which: int) -> torch.Tensor:
    normed_NDS = x_NDS * torch.rsqrt((x_NDS * x_NDS).mean(1, keepdim=True) + 1e-6)
    gains_NDS = weights.get("gains_ND", ())
    own = which - 3 + len(gains_NDS)
    return normed_NDS * gains_NDS[own] if own >= 0 else normed_NDS


def mapped(x_NDS: torch.Tensor, map_ODS: torch.Tensor) -> torch.Tensor:
    """Each seed's linear map of its own numbers: (N, O, S)."""
    parts = [x_NDS[:, None, place] * map_ODS[:, place] for place in range(map_ODS.shape[1])]
    return sum(parts[1:], parts[0])
