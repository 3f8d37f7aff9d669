"""Where the tokens of a forward pass are in the numbers of their rows: arguments of a model with swapped positions.

A pass may be over parts of rows: a step with a cache, or the nodes of a prefix tree. What a place is depends on the
whole row, so these functions get whole rows. `model` is a `SwappedLlama`, which may be wrapped in adapters, or any
other model, which needs no such arguments.

Shapes: B rows, Q tokens of a forward pass, K tokens of its rows so far, T nodes of a tree.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from lab.models.coupled import decisive
from lab.models.paths import path_inputs, path_rows
from lab.models.prefix_tree import PrefixTree
from lab.text.places import RowSpots

PLACED = ("place_ids", "kinds_BQK", "places_BK", "below_BQK", "turns_BQ2", "digits_BK")
"""The arguments of `SwappedLlama.forward` that say where digits are."""


def wants_places(model: Any) -> bool:
    """Whether forward passes over parts of rows need more than tokens. `model` may be wrapped in adapters."""
    return embeds_places(model) or biases_places(model)


def embeds_places(model: Any) -> bool:
    return getattr(model, "place_embeddings", None) is not None


def biases_places(model: Any) -> bool:
    return getattr(model, "same_place", None) is not None


def walks(model: Any) -> bool:
    return getattr(model, "walk_bias", None) is not None


def shareable(model: Any) -> Callable[[Sequence[int], int], int]:
    """See `SwappedLlama.shareable`; other models can share all tokens that agree."""
    return getattr(model, "shareable", lambda _, agreed: agreed)


def couples(model: Any) -> bool:
    return getattr(model, "coupled", False)


def spaces_evenly(model: Any) -> bool:
    return getattr(model, "spacing", 0) > 0


def left_padding(mask_BK: torch.Tensor | None) -> list[int]:
    """How many tokens stand before the text of each row, by an attention mask of two dimensions; [0], for all rows, if
    there is no such mask."""
    if mask_BK is None or mask_BK.dim() != 2:
        return [0]
    return mask_BK.long().argmax(-1).tolist()


def row_places(
    model: Any, rows: Sequence[Sequence[int]], last: int | None = None, padding: Sequence[int] = (0,)
) -> dict[str, torch.Tensor]:
    """The arguments that the model needs for the `last` tokens (default: all) of rows of the same length: position_ids
    and those of PLACED, or some of these. `padding`: see `left_padding`."""
    return step_places(model, rows, [last or len(row) for row in rows], padding)


def step_places(
    model: Any, rows: Sequence[Sequence[int]], counts: Sequence[int], padding: Sequence[int] = (0,)
) -> dict[str, torch.Tensor]:
    """Like `row_places`, for the last `counts` tokens of each row; the rows are padded on the right as well."""
    given, most = {}, max(counts)
    if embeds_places(model):
        last = [model.places(row)[-count:] for row, count in zip(rows, counts, strict=True)]
        given["place_ids"] = torch.tensor([[*places, *[0] * (most - len(places))] for places in last])
    spots = [model.spots(row, count) for row, count in zip(rows, counts, strict=True)] if biases_places(model) else []
    if spots:
        given |= model.pairs(spots, padding)
    if spaces_evenly(model):
        ids = [model.spaced(part) for part in spots]
        given["position_ids"] = _padded([one.positions_Q for one in ids])
        digits = _padded([part.own[:, 0] > 0 for part in spots])
        if digits.any():
            given |= {"turns_BQ2": _padded([one.turns_Q2 for one in ids]), "digits_BK": digits}
    elif couples(model):
        ids = [model.text_positions(row)[-count:] for row, count in zip(rows, counts, strict=True)]
        given["position_ids"] = torch.tensor([[*row, *row[-1:] * (most - len(row))] for row in ids])
    return {name: part.to(model.device) for name, part in given.items()}


def written_places(model: Any, rows: Sequence[Sequence[int]], counts: Sequence[int]) -> dict[str, torch.Tensor]:
    """Like `step_places`, for tokens that the model has written. It may write any number, so places beyond the last one
    that has an embedding count as the last."""
    given = step_places(model, rows, counts)
    if "place_ids" in given:
        given["place_ids"].clamp_(max=model.place_embeddings.num_embeddings)
    return given


def tree_places(model: Any, tree: PrefixTree, before: Sequence[int] = ()) -> dict[str, torch.Tensor]:
    """Like `row_places`, for the nodes of a tree as one row, which follows the tokens `before`."""
    given, known = {}, len(before)
    rows = [[*before, *(tree.tokens[node] for node in path)] for path in tree.paths]
    if embeds_places(model):
        given["place_ids"] = _of_nodes(tree, [model.places(row)[known:] for row in rows])
    if biases_places(model):
        spots = [model.spots(row, len(path)) for row, path in zip(rows, tree.paths, strict=True)]
        given |= _pairs_of_nodes(model, tree, spots, known) | _ids_of_nodes(model, tree, rows, spots, before)
    return {name: part.to(model.device) for name, part in given.items()}


def path_places(model: Any, tree: PrefixTree) -> dict[str, torch.Tensor]:
    """Like `tree_places`, but for attention along paths: tables of pairs belong to rows instead of nodes. Adds the
    output of `path_inputs`, and for walking heads what only a loss needs, decides_BQK (see `decisive`)."""
    rows = path_rows(tree)
    given = path_inputs(rows)
    tokens = [[tree.tokens[node] for node in path] for path in tree.paths]
    if embeds_places(model):
        given["place_ids"] = _of_nodes(tree, [model.places(path) for path in tokens])
    if not biases_places(model):
        return given
    spots = [model.spots(path, len(path)) for path in tokens]
    ends = [len(row.keys) for row in rows]
    parts = [spots[row.path].part(end - len(row.queries), end) for row, end in zip(rows, ends, strict=True)]
    if walks(model):
        digits = [torch.tensor(model.digits([tree.tokens[node] for node in row.keys])) for row in rows]
        given["decides_BQK"] = decisive(RowSpots.stacked(parts), model.operands, pad_sequence(digits, batch_first=True))
    return {**_ids_of_nodes(model, tree, tokens, spots), **model.pairs(parts), **given}


def _pairs_of_nodes(model: Any, tree: PrefixTree, spots: Sequence[RowSpots], known: int) -> dict[str, torch.Tensor]:
    """The arguments of `SwappedLlama.pairs` for the nodes of a tree as one row. `spots`: those of each path."""
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

    Args:
        model: the model.
        tree: the tree.
        rows: the tokens of each path, after those of `before`.
        spots: the spots of each path.
        before: the tokens before the tree.
    """
    if not couples(model):
        return {}
    if not spaces_evenly(model):
        return {"position_ids": _of_nodes(tree, [model.text_positions(row)[len(before) :] for row in rows])}
    ids = [model.spaced(row) for row in spots]
    given = {"position_ids": _of_nodes(tree, [one.positions_Q for one in ids])}
    if (digits := model.are_digits([*before, *tree.tokens])).any():
        turns = [_of_nodes(tree, [one.turns_Q2[:, side] for one in ids]) for side in range(2)]
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
