"""Numbers of any length that count as one token, and attention that sees only the digits near the current place.

    What is 4321 plus 98? 32       1234 + 89 = 1323, lowest digit first; the next digit is the hundreds digit
    0    1  2    3    4 5 6        position ids: all digits of a number share one (spaces left out here)
             .x.       .           x: the digit that is seen with a window of 0; with a window of 1, also those at .

A token sees itself and all text before it. From the two preceding numbers it sees only the digits whose place is close
to the place of the digit that would be written next. (`same_place` determines these digits, and has the bias by which
heads distinguish them.) All other digits are hidden. What the model computes for a digit therefore depends on the
digits around its place alone, not on the length of the number or on where the digit stands in it: if it is right for
eight digits, it is right for a thousand. A text without numbers is computed exactly as without these changes.

The other digits must be hidden in every layer. If each layer sees one place further, thirty layers see thirty places.

Shapes: N nodes of a prefix tree, B rows, Q own nodes of a row, K nodes of its path, H heads, D width.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention
from torch.nn.utils.rnn import pad_sequence
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from lab.models.prefix_tree import PrefixTree

HIDDEN = -1
"""The kind of a pair whose query must not see its key."""


def text_positions(words: Sequence[str]) -> list[int]:
    """The position id of each token of a row; adjacent digits share one id."""
    found: list[int] = []
    inside = False
    for word in words:
        digit = word.isascii() and word.isdigit()
        found.append(found[-1] if digit and inside else found[-1] + 1 if found else 0)
        inside = digit
    return found


def hide(kinds_QK: torch.Tensor, digits_K: torch.Tensor) -> torch.Tensor:
    """The kinds of the last Q tokens of a row, with HIDDEN for each digit without a kind. A token still sees itself."""
    queries, keys = kinds_QK.shape
    itself_QK = torch.arange(keys) == torch.arange(keys - queries, keys)[:, None]
    return torch.where((kinds_QK == 0) & digits_K & ~itself_QK, HIDDEN, kinds_QK)


class Paths(NamedTuple):
    """Which nodes of a tree each row needs, so that scores are computed within rows and not over the whole tree.

    If several rows share a node, it is a query of the first of them.
    """

    queries_BQ: torch.Tensor
    keys_BK: torch.Tensor
    found_N: torch.Tensor
    """The index of each node among the queries of all rows."""

    @classmethod
    def of(cls, tree: PrefixTree) -> "Paths":
        own = own_nodes(tree)
        longest = max(map(len, own))
        found = torch.empty(len(tree.tokens), dtype=torch.long)
        for row, nodes in enumerate(own):
            found[nodes] = row * longest + torch.arange(len(nodes))
        return cls(_padded(own), _padded(tree.paths), found)


def own_nodes(tree: PrefixTree) -> list[list[int]]:
    """Of each path the nodes that no earlier path has: its last ones."""
    known: set[int] = set()
    found = []
    for path in tree.paths:
        found.append([node for node in path if node not in known])
        known.update(path)
    return found


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
    query_BHQD, key_BHKD, value_BHKD = (
        _gathered(states, nodes)
        for states, nodes in ((query, paths.queries_BQ), (key, paths.keys_BK), (value, paths.keys_BK))
    )
    out_BHQD = scaled_dot_product_attention(
        query_BHQD, key_BHKD, value_BHKD, attention_mask, scale=scaling, enable_gqa=True
    )
    return out_BHQD.transpose(1, 2).flatten(0, 1).index_select(0, paths.found_N)[None], None


def _gathered(states_1HND: torch.Tensor, nodes_BT: torch.Tensor) -> torch.Tensor:
    states_NHD = states_1HND[0].transpose(0, 1)
    return states_NHD.index_select(0, nodes_BT.flatten()).unflatten(0, nodes_BT.shape).transpose(1, 2)


PATH_ATTENTION = "lab_paths"
AttentionInterface.register(PATH_ATTENTION, path_attention)
