"""Numbers of any length that count as one token, and attention that sees only the digits near the current place.

    What is 4321 plus 98? 32       1234 + 89 = 1323, lowest digit first; the next digit is the hundreds digit
    0    1  2    3    4 5 6        position ids: all digits of a number share one (spaces left out here)
             .x.       .           x: the digit that is seen with a window of 0; with a window of 1, also those at .

A token sees itself and all text before it. From the two preceding numbers it sees only the digits whose place is close
to the place of the digit that would be written next. (`same_place` determines these digits, and has the bias by which
heads distinguish them.) All other digits are hidden. What the model computes for a digit therefore depends on the
digits around its place alone, not on the length of the number or on where the digit stands in it: if it is right for
eight digits, it is right for a thousand. A text without numbers is computed exactly as without these changes.

The point of an answer also sees the digit before it. A digit is written by the token before it, so without this the
carry out of the tenths could not reach the ones.

The other digits must be hidden in every layer. If each layer sees one place further, thirty layers see thirty places.

Shapes: N nodes of a prefix tree, B rows, Q own nodes of a row, K nodes of its path, H heads, D width.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from lab.models.prefix_tree import PrefixTree
from lab.text.places import RowSpots

HIDDEN = -1
"""The kind of a pair whose query must not see its key."""
LONGEST = 16
"""The most queries of a row of paths."""


def text_positions(words: Sequence[str]) -> list[int]:
    """The position id of each token of a row; adjacent digits share one id."""
    found: list[int] = []
    inside = False
    for word in words:
        digit = word.isascii() and word.isdigit()
        found.append(found[-1] if digit and inside else found[-1] + 1 if found else 0)
        inside = digit
    return found


def hide(kinds_QK: torch.Tensor, spots: RowSpots, last_word: bool = False) -> torch.Tensor:
    """The kinds of the last Q tokens of a row, with HIDDEN for what they must not see.

    A token always sees itself, and a separator in an answer the digit before it, which may pass a carry on.

    Args:
        kinds_QK: the kinds of pairs. Digits without a kind are hidden.
        spots: of the row.
        last_word: whether an answer sees only the last word before it and the first token of the row; see
            `LocalityConfig.words`.
    """
    queries, keys = kinds_QK.shape
    at_K, at_Q1 = torch.arange(keys), torch.arange(keys - queries, keys)[:, None]
    starts_Q1, digits_K = torch.tensor(spots.starts)[:, None], torch.tensor(spots.own).view(-1, 3)[:, 1] > 0
    separators_Q1 = (starts_Q1 > 0) & ~digits_K[at_Q1]
    seen_QK = (at_K == at_Q1) | (separators_Q1 & (at_K == at_Q1 - 1))
    unseen_QK = digits_K.expand(queries, -1)
    if last_word:
        unseen_QK = unseen_QK | (~torch.tensor(spots.inside) & (at_K > 0) & (at_K < starts_Q1 - 1))
    return torch.where((kinds_QK == 0) & unseen_QK & ~seen_QK, HIDDEN, kinds_QK)


class Paths(NamedTuple):
    """Which nodes of a tree each row needs, so that scores are computed within rows and not over the whole tree.

    If several rows share a node, it is a query of the first of them. A row with many queries of its own is cut into
    several, so that rows are about equally long and little is computed for padding.
    """

    queries_BQ: torch.Tensor
    keys_BK: torch.Tensor
    found_N: torch.Tensor
    """The index of each node among the queries of all rows."""

    @classmethod
    def of(cls, tree: PrefixTree) -> "Paths":
        rows = list(path_rows(tree))
        queries = [row.queries for row in rows]
        longest = max(map(len, queries))
        found = torch.empty(len(tree.tokens), dtype=torch.long)
        for row, nodes in enumerate(queries):
            found[nodes] = row * longest + torch.arange(len(nodes))
        return cls(_padded(queries), _padded([row.keys for row in rows]), found)


class PathRow(NamedTuple):
    path: int
    """The path of the tree that the row is a part of."""
    keys: list[int]
    """The nodes of the path up to the last query."""
    queries: list[int]
    """The last of these nodes."""


def path_rows(tree: PrefixTree) -> Iterator[PathRow]:
    """The rows of a tree: of each path the nodes that no earlier path has, which are its last, LONGEST at a time."""
    known: set[int] = set()
    for number, path in enumerate(tree.paths):
        first = next((at for at, node in enumerate(path) if node not in known), len(path))
        known.update(path)
        for start in range(first, len(path), LONGEST):
            yield PathRow(number, path[: start + LONGEST], path[start : start + LONGEST])


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
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """Attention of the nodes of a tree, each along its own path. Without `paths` it is the attention of transformers.

    Args:
        module: the attention layer.
        query: (1, H, N, D).
        key: (1, key-value heads, N, D).
        value: (1, key-value heads, N, D).
        attention_mask: what is added to the scores, (B, H, Q, K).
        scaling: factor on the products of queries and keys.
        paths: the nodes of each row.

    Returns the output (1, N, H, D), and None in place of the attention weights.
    """
    if paths is None:
        return sdpa_attention_forward(module, query, key, value, attention_mask, scaling=scaling, **others)
    assert attention_mask is not None
    assert scaling is not None
    shared = key.shape[1]  # key-value heads, each of which serves several heads in turn
    query_GQD, key_GKD, value_GKD = (
        _gathered(states, nodes, shared)
        for states, nodes in ((query, paths.queries_BQ), (key, paths.keys_BK), (value, paths.keys_BK))
    )
    mask_GQK = attention_mask.reshape(len(query_GQD), query_GQD.shape[1], -1)
    scores_GQK = torch.baddbmm(mask_GQK, query_GQD, key_GKD.transpose(1, 2), alpha=scaling)
    out_GQD = torch.bmm(scores_GQK.softmax(-1), value_GKD)
    rows, queries = paths.queries_BQ.shape
    out_BHQD = out_GQD.view(rows, -1, queries, out_GQD.shape[-1])
    return out_BHQD.transpose(1, 2).flatten(0, 1).index_select(0, paths.found_N)[None], None


def _gathered(states_1HND: torch.Tensor, nodes_BT: torch.Tensor, shared: int) -> torch.Tensor:
    """The states of the nodes of each row, (rows x shared, heads / shared x T, D): one matrix for each key-value head
    of each row, so that keys need not be copied for the heads that share them."""
    states_NHD = states_1HND[0].transpose(0, 1)
    states_BTHD = states_NHD.index_select(0, nodes_BT.flatten()).unflatten(0, nodes_BT.shape)
    return states_BTHD.transpose(1, 2).reshape(len(nodes_BT) * shared, -1, states_NHD.shape[-1])


PATH_ATTENTION = "lab_paths"
AttentionInterface.register(PATH_ATTENTION, path_attention)
