"""Where the tokens of a forward pass are in the numbers of their rows: arguments of a model with swapped positions.

A forward pass may be over parts of rows: a step with a cache, or the nodes of a prefix tree. The place of a digit
depends on the whole row, so these functions get whole rows. `model` is a `SwappedLlama`, which may be wrapped in
adapters, or any other model, which needs no such arguments.

Shapes: B rows, Q tokens of a forward pass, K tokens of its rows so far, T nodes of a tree.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from lab.models.coupled import text_positions
from lab.models.even_spacing import spaced_ids
from lab.models.paths import path_inputs, path_rows
from lab.models.prefix_tree import PrefixTree
from lab.models.walking_heads import decisive
from lab.text.places import RowSpots

PLACED = ("place_ids", "kinds_BQK", "places_BK", "below_BQK", "turns_BQ2", "digits_BK")
"""The arguments of `SwappedLlama.forward` that say where digits are:

place_ids   (B, Q), the place of each token in its run of digits (`SwappedLlama.places`)
kinds_BQK   the kinds of pairs of queries and keys (`same_place.pairs`, `coupled.hide`)
places_BK   the places of keys (`walking_heads.walk_down`), only for walking heads
below_BQK   the keys that a query may stop at (`walking_heads.walk_down`), only for walking heads
turns_BQ2   how queries turn to their two ids (`SpacedIds`), only for rows with evenly spaced numbers
digits_BK   whether keys are digits, only for rows with evenly spaced numbers
"""


def wants_places(model: Any) -> bool:
    """Whether forward passes over parts of rows need more than tokens."""
    return biases_places(model) or getattr(model, "place_embeddings", None) is not None


def biases_places(model: Any) -> bool:
    """Whether the model has a bias that depends on places, and so needs a table of pairs of queries and keys."""
    return getattr(model, "same_place", None) is not None


def shareable(model: Any) -> Callable[[Sequence[int], int], int]:
    """See `SwappedLlama.shareable`; other models can share all tokens that agree."""
    return getattr(model, "shareable", lambda _, agreed: agreed)


def left_padding(mask_BK: torch.Tensor | None) -> list[int]:
    """How many tokens stand before the text of each row, given an attention mask of two dimensions; [0], which stands
    for all rows, if there is no such mask."""
    if mask_BK is None or mask_BK.dim() != 2:
        return [0]
    return mask_BK.long().argmax(-1).tolist()


def row_places(
    model: Any, rows: Sequence[Sequence[int]], counts: Sequence[int] | None = None, padding: Sequence[int] = (0,)
) -> dict[str, torch.Tensor]:
    """The arguments that the model needs for the last tokens of rows: position_ids and those of PLACED, or some of
    these.

    Args:
        model: the model.
        rows: the tokens of whole rows so far.
        counts: how many tokens of each row are in the forward pass, all by default. Arguments of rows with fewer tokens
            are padded on the right.
        padding: see `left_padding`.
    """
    if not wants_places(model):
        return {}
    counts = counts or [len(row) for row in rows]
    given, most = {}, max(counts)
    if model.place_embeddings is not None:
        last = [model.places(row)[-count:] for row, count in zip(rows, counts, strict=True)]
        given["place_ids"] = torch.tensor([[*places, *[0] * (most - len(places))] for places in last])
    spots = [model.spots(row, count) for row, count in zip(rows, counts, strict=True)] if biases_places(model) else []
    if spots:
        given |= model.pairs(spots, padding)
    if model.spacing:
        ids = [spaced_ids(part, model.spacing) for part in spots]
        given["position_ids"] = _padded([one.positions_Q for one in ids])
        digits = _padded([part.own[:, 0] > 0 for part in spots])
        if digits.any():
            given |= {"turns_BQ2": _padded([one.turns_Q2 for one in ids]), "digits_BK": digits}
    elif model.coupled:
        ids = [text_positions(model.are_digits(row))[-count:] for row, count in zip(rows, counts, strict=True)]
        given["position_ids"] = torch.from_numpy(np.stack([np.pad(row, (0, most - len(row)), "edge") for row in ids]))
    return {name: part.to(model.device) for name, part in given.items()}


def written_places(model: Any, rows: Sequence[Sequence[int]], counts: Sequence[int]) -> dict[str, torch.Tensor]:
    """Like `row_places`, for tokens that the model has written. It may write any number, so places beyond the last one
    that has an embedding count as the last."""
    given = row_places(model, rows, counts)
    if "place_ids" in given:
        given["place_ids"].clamp_(max=model.place_embeddings.num_embeddings)
    return given


def tree_places(model: Any, tree: PrefixTree, before: Sequence[int] = ()) -> dict[str, torch.Tensor]:
    """Like `row_places`, for the nodes of a tree as one row, which follows the tokens `before`."""
    if not wants_places(model):
        return {}
    given, known = {}, len(before)
    rows = [[*before, *(tree.tokens[node] for node in path)] for path in tree.paths]
    if model.place_embeddings is not None:
        given["place_ids"] = _of_nodes(tree, [model.places(row)[known:] for row in rows])
    if biases_places(model):
        spots = [model.spots(row, len(path)) for row, path in zip(rows, tree.paths, strict=True)]
        given |= _pairs_of_nodes(model, tree, spots, known) | _ids_of_nodes(model, tree, rows, spots, before)
    return {name: part.to(model.device) for name, part in given.items()}


def path_places(model: Any, tree: PrefixTree) -> dict[str, torch.Tensor]:
    """Like `tree_places`, but for attention along paths: tables of pairs belong to rows instead of nodes. Adds the
    output of `path_inputs`, and decides_BQK (see `decisive`), which only the loss of walking heads needs."""
    rows = path_rows(tree)
    given = path_inputs(rows)
    tokens = [[tree.tokens[node] for node in path] for path in tree.paths]
    if wants_places(model) and model.place_embeddings is not None:
        given["place_ids"] = _of_nodes(tree, [model.places(path) for path in tokens])
    if not biases_places(model):
        return given
    spots = [model.spots(path, len(path)) for path in tokens]
    ends = [len(row.keys) for row in rows]
    parts = [spots[row.path].part(end - len(row.queries), end) for row, end in zip(rows, ends, strict=True)]
    if model.walk_bias is not None:
        digits = [torch.tensor(model.digits([tree.tokens[node] for node in row.keys])) for row in rows]
        given["decides_BQK"] = decisive(RowSpots.stacked(parts), model.operands, pad_sequence(digits, batch_first=True))
    return {**_ids_of_nodes(model, tree, tokens, spots), **model.pairs(parts), **given}


def _pairs_of_nodes(model: Any, tree: PrefixTree, spots: Sequence[RowSpots], known: int) -> dict[str, torch.Tensor]:
    """The output of `SwappedLlama.pairs` for the nodes of a tree as one row. `spots`: those of each path."""
    # The place of a digit depends on the whole number, so a shared node may have different places in its rows.
    nodes = len(tree.tokens)
    found: dict[str, torch.Tensor] = {}
    for row, path in zip(spots, tree.paths, strict=True):
        queries, keys = torch.tensor(path), torch.tensor([*range(known), *(known + node for node in path)])
        for name, part in model.pairs([row]).items():
            shape = (1, nodes, known + nodes) if part.dim() == 3 else (1, known + nodes)
            whole = found.setdefault(name, torch.zeros(shape, dtype=part.dtype))
            whole[(0, queries[:, None], keys) if part.dim() == 3 else (0, keys)] = part[0]
    return found


def _ids_of_nodes(
    model: Any, tree: PrefixTree, rows: Sequence[Sequence[int]], spots: Sequence[RowSpots], before: Sequence[int] = ()
) -> dict[str, torch.Tensor]:
    """The position ids of the nodes of a tree if positions are coupled, and what evenly spaced numbers also need.

    `rows` are the tokens of each path, after those of `before`, and `spots` their spots.
    """
    if not model.coupled:
        return {}
    if not model.spacing:
        ids = [text_positions(model.are_digits(row))[len(before) :] for row in rows]
        return {"position_ids": _of_nodes(tree, ids)}
    spaced = [spaced_ids(row, model.spacing) for row in spots]
    given = {"position_ids": _of_nodes(tree, [one.positions_Q for one in spaced])}
    if (digits := model.are_digits([*before, *tree.tokens])).any():
        turns = [_of_nodes(tree, [one.turns_Q2[:, side] for one in spaced]) for side in range(2)]
        given |= {"turns_BQ2": torch.stack(turns, -1), "digits_BK": torch.from_numpy(digits)[None]}
    return given


def _padded(rows: Sequence[np.ndarray]) -> torch.Tensor:
    return pad_sequence([torch.from_numpy(row) for row in rows], batch_first=True)


def _of_nodes(tree: PrefixTree, rows: Sequence[Sequence[int] | np.ndarray]) -> torch.Tensor:
    """One number for each token of the rows, rearranged as one number for each node, (1, T)."""
    found_1T = torch.zeros(1, len(tree.tokens), dtype=torch.long)
    for row, path in zip(rows, tree.paths, strict=True):
        found_1T[0, path] = torch.as_tensor(row)
    return found_1T
