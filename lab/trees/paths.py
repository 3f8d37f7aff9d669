"""Attention of the nodes of a prefix tree, computed along their paths.

A node attends only to itself and its ancestors. These are few: in batches of 32 to 64 problems, 94 to 98 % of the pairs
of nodes are hidden. So the tree is cut into rows, each a part of one path, and scores are computed within rows.

Shapes: N nodes of a tree; B rows, each with Q queries (nodes of its own) and K keys (the nodes of its path up to the
last query); H heads, G key-value heads, D width of a head; R = B x G matrices, one for each row and key-value head, P
of them computed at once.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask
from transformers.models.llama.modeling_llama import repeat_kv

from lab.parts.watching import is_watched, watched, watched_attention
from lab.trees.prefix_tree import PrefixTree

LONGEST = 32
"""The largest number of queries in a row."""
ROWS_AT_ONCE = 8
"""The number of rows whose scores a CPU computes at once. A GPU computes all rows at once: there, starting an operation
costs more than what it computes for padding."""

_HIDDEN = -1e30
"""The score of a hidden key. It is not -inf, because padding may see no key, and softmax would then be NaN."""


class Paths(NamedTuple):
    """Which nodes of a tree each row needs.

    If several paths share a node, it is a query only in a row of the first of them. A path with many such queries is
    cut into several rows, so that rows are about equally long and little is computed for padding.
    """

    queries_BQ: torch.Tensor
    """The nodes that attend in each row, padded with 0."""
    keys_BK: torch.Tensor
    """The nodes that they may attend to, padded with 0."""
    found_N: torch.Tensor
    """The index of each node among the queries of all rows."""
    lengths_B: torch.Tensor
    """The number of keys of each row, not counting padding."""

    @classmethod
    def of(cls, rows: "Sequence[PathRow]", known: int = 0) -> "Paths":
        """The paths of a tree by its `path_rows`. The tree follows `known` tokens of a cache, which all nodes see."""
        queries = [row.queries for row in rows]
        longest = max(map(len, queries))
        found = torch.empty(sum(map(len, queries)), dtype=torch.long)
        for row, nodes in enumerate(queries):
            found[nodes] = row * longest + torch.arange(len(nodes))
        keys = [[*range(known), *(known + node for node in row.keys)] for row in rows]
        return cls(_padded(queries), _padded(keys), found, torch.tensor([len(row) for row in keys]))


class PathRow(NamedTuple):
    path: int
    """The number of the path that the row is a part of."""
    keys: list[int]
    """The nodes of the path up to the last query."""
    queries: list[int]
    """The last of these nodes, at most LONGEST; no earlier path has them."""


def path_rows(tree: PrefixTree) -> list[PathRow]:
    """The rows of a tree, short ones first. The queries of a path are its nodes that no earlier path has, which are its
    last ones; each row has at most LONGEST of them."""
    return sorted(_path_rows(tree), key=lambda row: len(row.keys))


def _path_rows(tree: PrefixTree) -> Iterator[PathRow]:
    known: set[int] = set()
    for index, path in enumerate(tree.paths):
        first = next((at for at, node in enumerate(path) if node not in known), len(path))
        known.update(path)
        for start in range(first, len(path), LONGEST):
            yield PathRow(index, path[: start + LONGEST], path[start : start + LONGEST])


def path_inputs(rows: Sequence[PathRow], known: int = 0) -> dict[str, torch.Tensor]:
    """The fields of `Paths`, and attention_mask (B, 1, Q, K), True for visible keys. For arguments see `Paths.of`."""
    paths = Paths.of(rows, known)
    visible_BQK = torch.zeros(*paths.queries_BQ.shape, paths.keys_BK.shape[1], dtype=torch.bool)
    for row, (_, keys, queries) in enumerate(rows):
        at_Q1 = known + torch.arange(len(keys) - len(queries), len(keys))[:, None]
        visible_BQK[row, : len(queries)] = torch.arange(visible_BQK.shape[2]) <= at_Q1
    return {"attention_mask": visible_BQK[:, None], **paths._asdict()}


def _padded(rows: Sequence[Sequence[int]]) -> torch.Tensor:
    return pad_sequence([torch.tensor(row, dtype=torch.long) for row in rows], batch_first=True)


def path_attention(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    paths: Paths | None = None,
    acts: Sequence[Any] = (),
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """Attention of the nodes of a tree, each along its own path. Without `paths` it is the attention of transformers.

    Args:
        module: the attention layer.
        query: (1, H, N, D).
        key: (1, G, N, D); with a cache, the keys in the cache come first.
        value: like `key`.
        attention_mask: True for visible keys, (B, 1, Q, K), or what is added to the scores, (B, H, Q, K).
        scaling: factor on the products of queries and keys; 1 / sqrt(D) if not given.
        paths: the nodes of each row.
        acts: what the model's parts do in this forward pass (`lab.parts.part.Act`).

    Returns the output (1, N, H, D), and None in place of the attention weights.
    """
    scale = scaling or query.shape[-1] ** -0.5
    scored = any(act.rescores or act.own_heads for act in acts)
    if paths is None:
        if scored:
            assert attention_mask is not None
            out_BQHD = scored_attention(module, acts, query, key, value, attention_mask, scale)
        elif (two := _two_queries(acts, query)) is None and is_watched(module):
            out_BQHD = watched_attention(module, query, key, value, attention_mask, scale)
        elif two is None:
            out_BQHD = _attention(module, query, key, value, attention_mask, scaling=scale, **others)
        else:
            assert attention_mask is not None
            to_words, query, digits_BK = two
            watch = partial(watched, module)
            out_BQHD = two_query_attention((to_words, query), key, value, attention_mask, digits_BK, scale, watch)
            out_BQHD = out_BQHD.transpose(1, 2)
        return _with_found(module, acts, out_BQHD, query, key, value, scale), None
    assert attention_mask is not None
    (rows, queries), groups = paths.queries_BQ.shape, key.shape[1]
    query_RQD = _gathered(query, paths.queries_BQ, groups)
    key_RKD, value_RKD = (_gathered(states, paths.keys_BK, groups) for states in (key, value))
    query_BHQD = query_RQD.view(rows, -1, queries, query_RQD.shape[-1])
    key_BGKD, value_BGKD = (part.unflatten(0, (rows, groups)) for part in (key_RKD, value_RKD))
    if scored:
        out_BQHD = scored_attention(module, acts, query_BHQD, key_BGKD, value_BGKD, attention_mask, scale)
        out_RQD = out_BQHD.transpose(1, 2)
    elif (two := _two_queries(acts, query_BHQD)) is not None:
        to_words, query_BHQD, digits_BK = two
        out_RQD = two_query_attention((to_words, query_BHQD), key_BGKD, value_BGKD, attention_mask, digits_BK, scale)
    elif attention_mask.dtype == torch.bool:
        out_RQD = _PathProduct.apply(query_RQD * scale, key_RKD, value_RKD, attention_mask[:, 0], paths.lengths_B)
    else:
        mask_RQK = attention_mask.expand(-1, query.shape[1], -1, -1).reshape(len(query_RQD), query_RQD.shape[1], -1)
        scores_RQK = torch.baddbmm(mask_RQK, query_RQD, key_RKD.transpose(1, 2), alpha=scale)
        out_RQD = torch.bmm(scores_RQK.softmax(-1), value_RKD)
    out_BQHD = out_RQD.view(rows, -1, queries, out_RQD.shape[-1]).transpose(1, 2)
    out_BQHD = _with_found(module, acts, out_BQHD, query_BHQD, key_BGKD, value_BGKD, scale)
    return out_BQHD.flatten(0, 1).index_select(0, paths.found_N)[None], None


def scored_attention(
    module: Any,
    acts: Sequence[Any],
    query_BHQD: torch.Tensor,
    key_BGKD: torch.Tensor,
    value_BGKD: torch.Tensor,
    mask_BHQK: torch.Tensor,
    scale: float,
) -> torch.Tensor:
    """Attention (B, Q, H, D) in which parts change the scores, or have weights of their own in the last heads. For
    arguments see `two_query_attention` and `path_attention`."""
    heads, layer = query_BHQD.shape[1], module.layer_idx
    key_BHKD, value_BHKD = (repeat_kv(states, heads // states.shape[1]) for states in (key_BGKD, value_BGKD))
    products_BHQK = query_BHQD @ key_BHKD.transpose(-1, -2) * scale
    usual = heads - sum(act.own_heads for act in acts)
    mask_BHQK = mask_BHQK.expand(-1, heads, -1, -1)[:, :usual]
    scores_BHQK = products_BHQK[:, :usual] + mask_BHQK
    for act in acts:
        if act.rescores:
            given = query_BHQD[:, :usual], key_BHKD[:, :usual], mask_BHQK, scale
            scores_BHQK = act.scores(layer, scores_BHQK, *given)
    weights = [scores_BHQK.softmax(-1, dtype=torch.float32)]
    weights += [act.weights(layer, products_BHQK[:, usual:]) for act in acts if act.own_heads]
    weights_BHQK = watched(module, weights[0] if len(weights) == 1 else torch.cat(weights, 1))
    return (weights_BHQK.to(value_BHKD.dtype) @ value_BHKD).transpose(1, 2).contiguous()


def _with_found(
    module: Any,
    acts: Sequence[Any],
    out_BQHD: torch.Tensor,
    query_BHQD: torch.Tensor,
    key_BGKD: torch.Tensor,
    value_BGKD: torch.Tensor,
    scale: float,
) -> torch.Tensor:
    """The output of the heads, with what parts add to it."""
    for act in acts:
        out_BQHD = act.found(module.layer_idx, out_BQHD, query_BHQD, key_BGKD, value_BGKD, scale)
    return out_BQHD


def _two_queries(
    acts: Sequence[Any], query_BHQD: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None:
    """The queries of words, those of digits, and which keys are digits, if a part tells them apart."""
    return next((two for act in acts if (two := act.queries(query_BHQD)) is not None), None)


def two_query_attention(
    queries: tuple[torch.Tensor, torch.Tensor],
    key_BGKD: torch.Tensor,
    value_BGKD: torch.Tensor,
    mask_BHQK: torch.Tensor,
    digits_BK: torch.Tensor,
    scale: float,
    watch: Callable[[torch.Tensor], torch.Tensor] = lambda weights: weights,
) -> torch.Tensor:
    """Attention in which digits are seen by other queries than words. Returns (B, H, Q, D).

    Args:
        queries: those that attend to words, and those that attend to digits, (B, H, Q, D) each.
        key_BGKD: the keys.
        value_BGKD: the values.
        mask_BHQK: what is added to the scores; 1 may stand for all heads.
        digits_BK: whether each key is a digit.
        scale: factor on the products of queries and keys.
        watch: gets the weights (B, H, Q, K), and returns those to use.
    """
    groups = key_BGKD.shape[1]
    # the heads of a group share their keys, so that keys need not be copied
    to_words, to_digits = (
        part.unflatten(1, (groups, -1)).flatten(2, 3) @ key_BGKD.transpose(-1, -2) for part in queries
    )
    heads, count = queries[0].shape[1] // groups, queries[0].shape[2]
    digits_B111K = digits_BK[:, None, None, None]
    scores = torch.where(digits_B111K, *(part.unflatten(2, (heads, count)) for part in (to_digits, to_words))) * scale
    scores = scores + mask_BHQK.expand(-1, groups * heads, -1, -1).unflatten(1, (groups, heads))
    weights = scores.softmax(-1, dtype=torch.float32).to(value_BGKD.dtype)
    weights = watch(weights.flatten(1, 2)).unflatten(1, (groups, heads))
    return (weights.flatten(2, 3) @ value_BGKD).unflatten(2, (heads, count)).flatten(1, 2)


def _attention(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float,
    **others: Any,
) -> torch.Tensor:
    """The attention of transformers, (B, Q, H, D). For a few queries on a CPU, `_few_queries` computes it faster."""
    few = query.shape[2] <= LONGEST and query.device.type == "cpu" and not torch.is_grad_enabled()
    if few and attention_mask is not None and attention_mask.dtype == torch.bool:
        return _few_queries(query, key, value, attention_mask, scaling)
    return sdpa_attention_forward(module, query, key, value, attention_mask, scaling=scaling, **others)[0]


def _few_queries(
    query_BHQD: torch.Tensor, key_BGKD: torch.Tensor, value_BGKD: torch.Tensor, visible_B1QK: torch.Tensor, scale: float
) -> torch.Tensor:
    """Attention (B, Q, H, D) with one product for all heads that share keys, so that keys need not be copied for each
    of them. Scores are in float32, as in the attention of transformers."""
    rows, heads, queries, width = query_BHQD.shape
    matrices, keys = rows * key_BGKD.shape[1], key_BGKD.shape[2]
    query_RQD = (query_BHQD.float() * scale).reshape(matrices, -1, width)
    key_RKD = key_BGKD.reshape(matrices, keys, width).float()
    with torch.autocast("cpu", enabled=False):
        scores_RQK = torch.bmm(query_RQD, key_RKD.transpose(1, 2))
    scores_RQK.view(rows, heads, queries, keys).masked_fill_(~visible_B1QK, _HIDDEN)
    weights_RQK = scores_RQK.softmax(-1).to(value_BGKD.dtype)
    out_RQD = torch.bmm(weights_RQK, value_BGKD.reshape(matrices, keys, width))
    return out_RQD.view(rows, heads, queries, width).transpose(1, 2)


def _gathered(states_1HND: torch.Tensor, nodes_BT: torch.Tensor, groups: int) -> torch.Tensor:
    """The states of the nodes of each row, (rows x groups, heads / groups x T, D): one matrix for each row and
    key-value head, so that keys need not be copied for the heads that share them."""
    states_NHD = states_1HND[0].transpose(0, 1)
    states_BTHD = states_NHD.index_select(0, nodes_BT.flatten()).unflatten(0, nodes_BT.shape)
    return states_BTHD.transpose(1, 2).reshape(len(nodes_BT) * groups, -1, states_NHD.shape[-1])


class _PathProduct(torch.autograd.Function):
    """Attention within rows, on a CPU `ROWS_AT_ONCE` rows at a time, so that their scores stay in its cache. Rows are
    sorted by length, so rows that are computed at once are about equally long. Scores are in float32, as in the
    attention of transformers."""

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any,
        query_RQD: torch.Tensor,
        key_RKD: torch.Tensor,
        value_RKD: torch.Tensor,
        visible_BQK: torch.Tensor,
        lengths_B: torch.Tensor,
    ) -> torch.Tensor:
        parts = _parts(lengths_B, len(key_RKD) // len(lengths_B), key_RKD.shape[1])
        out_RQD, weights = torch.empty_like(query_RQD), []
        for rows, part, keys in parts:
            key_PKD, value_PKD = key_RKD[part, :keys].float(), value_RKD[part, :keys]
            with torch.autocast(query_RQD.device.type, enabled=False):
                scores_PQK = torch.bmm(query_RQD[part].float(), key_PKD.transpose(1, 2))
            hidden_BQK = ~visible_BQK[rows, :, :keys]
            by_head = scores_PQK.view(len(hidden_BQK), -1, *hidden_BQK.shape[1:])
            by_head.masked_fill_(hidden_BQK[:, None], _HIDDEN)
            weights.append(scores_PQK.softmax(-1).to(value_PKD.dtype))
            torch.bmm(weights[-1], value_PKD, out=out_RQD[part])
        ctx.save_for_backward(query_RQD, key_RKD, value_RKD, *weights)
        ctx.parts = parts
        return out_RQD

    @staticmethod
    def backward(ctx: Any, gradient_RQD: torch.Tensor) -> tuple[torch.Tensor | None, ...]:  # type: ignore[override]
        query_RQD, key_RKD, value_RKD, *weights = ctx.saved_tensors
        slopes = torch.empty_like(query_RQD), torch.zeros_like(key_RKD), torch.zeros_like(value_RKD)
        for (_, part, keys), weights_PQK in zip(ctx.parts, weights, strict=True):
            gradient_PQD = gradient_RQD[part]
            slopes[2][part, :keys] = torch.bmm(weights_PQK.transpose(1, 2), gradient_PQD)
            slope_PQK = torch.bmm(gradient_PQD, value_RKD[part, :keys].transpose(1, 2))
            slope_PQK = torch.ops.aten._softmax_backward_data(slope_PQK, weights_PQK, -1, weights_PQK.dtype)
            torch.bmm(slope_PQK, key_RKD[part, :keys], out=slopes[0][part])
            slopes[1][part, :keys] = torch.bmm(slope_PQK.transpose(1, 2), query_RQD[part])
        return *slopes, None, None


def _parts(lengths_B: torch.Tensor, groups: int, keys: int) -> list[tuple[slice, slice, int]]:
    """For each part that is computed at once: its rows, the matrices of these rows, and the largest number of keys of a
    row. `keys`: that number over all rows."""
    if lengths_B.device.type != "cpu":
        return [(slice(None), slice(None), keys)]  # reading the lengths would wait for the GPU
    lengths = lengths_B.tolist()
    starts = range(0, len(lengths), ROWS_AT_ONCE)
    slices = [slice(start, min(start + ROWS_AT_ONCE, len(lengths))) for start in starts]
    return [(rows, slice(rows.start * groups, rows.stop * groups), max(lengths[rows])) for rows in slices]


PATH_ATTENTION = "lab_paths"
AttentionInterface.register(PATH_ATTENTION, path_attention)
AttentionMaskInterface.register(PATH_ATTENTION, sdpa_mask)


def attends_along_paths(model: Any) -> bool:
    """Whether the model's attention is `path_attention`."""
    return attention_of(model) == PATH_ATTENTION


def attend_along_paths(model: Any) -> None:
    """Makes a model compute the attention of trees along their paths, if it uses SDPA."""
    if attention_of(model) == "sdpa":
        model.set_attn_implementation(PATH_ATTENTION)


def reads_trees(model: Any) -> bool:
    """Whether the model's attention takes a mask of booleans for each pair of tokens."""
    return attention_of(model) in (PATH_ATTENTION, "sdpa")


def attention_of(model: Any) -> str | None:
    """The name of the model's attention in transformers; None if it has no such name."""
    return getattr(getattr(model, "config", None), "_attn_implementation", None)
