"""Numbers of any length as one token of a text, and a view of digits that is bounded to their place.

    What is 4321 plus 98?  52          1234 + 89 = 1323; the next digit is of the hundreds
            ^^^^      ^^   ^^
    ids 2   3    4    5  6 7           all digits of a number have its id, and text goes on as if it were one token
            · x         x              places that are seen with a window of 0: 3 of 1234; with 1 its neighbours too

A token sees all text before it and itself, and those digits of the two numbers before it whose place is close to that
of the digit that would be written next (`same_place` tells which these are, and has the bias by which heads tell them
apart). Nothing else of a number is seen, so that what is computed of a digit depends on the digits around its place,
and on neither the number's length nor where in it the digit is: what holds for eight digits holds for a thousand. A
text without numbers is computed as it is without all this, to the bit.

A bound in every layer is what it takes. Where each layer looks one place further, thirty layers look thirty places far.

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
"""The kind of a pair that is not to see each other."""


def text_positions(words: Sequence[str]) -> list[int]:
    """The position id of each token of a row; digits side by side have one in common."""
    found: list[int] = []
    inside = False
    for word in words:
        digit = word.isascii() and word.isdigit()
        found.append(found[-1] if digit and inside else found[-1] + 1 if found else 0)
        inside = digit
    return found


def hide(kinds_QK: torch.Tensor, digits_K: torch.Tensor) -> torch.Tensor:
    """Kinds of the last tokens of a row, with all digits hidden that have no kind; a token sees itself."""
    queries, keys = kinds_QK.shape
    itself_QK = torch.arange(keys) == torch.arange(keys - queries, keys)[:, None]
    return torch.where((kinds_QK == 0) & digits_K & ~itself_QK, HIDDEN, kinds_QK)


class Paths(NamedTuple):
    """Which nodes of a tree each row is computed of: as many scores as the rows have alone, not as the whole tree has.

    A node that several rows share is a query of the first of them.
    """

    queries_BQ: torch.Tensor
    keys_BK: torch.Tensor
    found_N: torch.Tensor
    """Where each node is among all queries."""

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
    """Of nodes (1, H, N, D), each along its own path; attention_mask is what is added to the scores, (B, H, Q, K).

    Without paths it is the attention of transformers.
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
