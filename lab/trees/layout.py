"""Lays out what parts must know about tokens (lab/parts/part.py) for the rows, the tree or the paths of a forward pass.

Parts compute their inputs from whole rows, and name them by their shapes: _BQ for the tokens of the forward pass, _BK
for all tokens of the rows so far, _BQK for pairs. `model` is a model with parts, which may be wrapped in adapters, or
any other model, which needs no such inputs.

Shapes: B rows, Q tokens of a forward pass, K tokens of its rows so far, T nodes of a tree.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from lab.trees.paths import Paths, path_inputs, path_rows
from lab.trees.prefix_tree import PrefixTree


class PartInputs(NamedTuple):
    position_ids: torch.Tensor | None
    """(B, Q); None if no part decides them."""
    parts: dict[str, dict[str, torch.Tensor]]
    """The inputs of each part, by its kind."""


def reads_rows(model: Any) -> bool:
    """Whether the model has parts, so that forward passes over parts of rows need more than tokens."""
    return len(getattr(model, "parts", ())) > 0


def has_pairs(model: Any) -> bool:
    """Whether a part of the model needs tables over pairs of queries and keys."""
    return getattr(model, "has_pairs", False)


def shareable(model: Any) -> Callable[[Sequence[int], int], int]:
    """See `GraftedLlama.shareable`; other models can share all tokens that agree."""
    return getattr(model, "shareable", lambda _, agreed: agreed)


def left_padding(mask_BK: torch.Tensor | None) -> list[int]:
    """How many tokens stand before the text of each row, given an attention mask of two dimensions; [0], which stands
    for all rows, if there is no such mask."""
    if mask_BK is None or mask_BK.dim() != 2:
        return [0]
    return mask_BK.long().argmax(-1).tolist()


def row_inputs(
    model: Any,
    rows: Sequence[Sequence[int]] | torch.Tensor,
    counts: Sequence[int] | None = None,
    padding: Sequence[int] = (0,),
    written: bool = False,
) -> dict[str, Any]:
    """The arguments that the model needs for the last tokens of rows: part_inputs, and position_ids if a part decides
    them.

    Args:
        model: the model.
        rows: the tokens of whole rows so far; (B, K) if they are a tensor.
        counts: how many tokens of each row are in the forward pass, all by default.
        padding: see `left_padding`.
        written: whether the model itself wrote these tokens.
    """
    if not reads_rows(model):
        return {}
    counts = counts or [len(row) for row in rows]
    spans = [(row, len(whole) - count, len(whole)) for row, (whole, count) in enumerate(zip(rows, counts, strict=True))]
    return _arguments(model, model.part_inputs(rows, spans, padding, written=written))


def tree_inputs(model: Any, tree: PrefixTree, before: Sequence[int] = ()) -> dict[str, Any]:
    """Like `row_inputs`, for the nodes of a tree as one row, which follows the tokens `before`."""
    if not reads_rows(model):
        return {}
    known = len(before)
    rows = [[*before, *(tree.tokens[node] for node in path)] for path in tree.paths]
    given = model.part_inputs(rows, [(row, known, len(whole)) for row, whole in enumerate(rows)])
    ids = None if given.position_ids is None else _of_nodes("_BQ", given.position_ids, tree, known)
    parts = {
        kind: {name: _of_nodes(name, part, tree, known) for name, part in inputs.items()}
        for kind, inputs in given.parts.items()
    }
    return _arguments(model, PartInputs(ids, parts))


def tree_path_inputs(
    model: Any, tree: PrefixTree, before: Sequence[int] = (), supervised: bool = False
) -> dict[str, Any]:
    """Like `tree_inputs`, but for attention along paths: inputs belong to the rows of paths instead of nodes, except
    position_ids. Adds the output of `path_inputs`. `supervised`: whether the paths end with answers."""
    rows, known = path_rows(tree), len(before)
    given = path_inputs(rows, known)
    if not reads_rows(model):
        return given
    wholes = [[*before, *(tree.tokens[node] for node in path)] for path in tree.paths]
    spans = [(row.path, known + len(row.keys) - len(row.queries), known + len(row.keys)) for row in rows]
    found = model.part_inputs(wholes, spans, supervised=supervised)
    if found.position_ids is not None:
        found = found._replace(position_ids=_by_node(found.position_ids, given["found_N"]))
    return {**_arguments(model, found), **given}


def by_node(inputs: Mapping[str, torch.Tensor], paths: Paths | None) -> Mapping[str, torch.Tensor]:
    """The inputs about the tokens of a forward pass in the order of the nodes, if they belong to the rows of paths."""
    if paths is None:
        return inputs
    return {name: _by_node(part, paths.found_N) for name, part in inputs.items() if _shape(name) == "BQ"}


def _by_node(part_BQ: torch.Tensor, found_N: torch.Tensor) -> torch.Tensor:
    return part_BQ.flatten(0, 1).index_select(0, found_N)[None]


def _shape(name: str) -> str:
    """BQ, BK or BQK, from the name of an input."""
    found = re.search(r"_(BQK|BQ|BK)\d*$", name)
    assert found is not None, f"the name of the input {name} does not end in _BQ, _BK or _BQK"
    return found[1]


def _of_nodes(name: str, part: torch.Tensor, tree: PrefixTree, known: int) -> torch.Tensor:
    """An input of the paths of a tree, rearranged for its nodes as one row: (1, T), (1, known + T) or (1, T, known +
    T), and other dimensions after these. A node that several paths share has the entry of the last of them."""
    nodes, shape = len(tree.tokens), _shape(name)
    sizes = {"BQ": (nodes,), "BK": (known + nodes,), "BQK": (nodes, known + nodes)}[shape]
    found = part.new_zeros(1, *sizes, *part.shape[1 + len(sizes) :])
    for row, path in zip(part, tree.paths, strict=True):
        queries, keys = torch.tensor(path), torch.tensor([*range(known), *(known + node for node in path)])
        if shape == "BQK":
            found[0, queries[:, None], keys] = row[: len(queries), : len(keys)]
        else:
            at = queries if shape == "BQ" else keys
            found[0, at] = row[: len(at)]
    return found


def _arguments(model: Any, given: PartInputs) -> dict[str, Any]:
    parts = {
        kind: {name: part.to(model.device) for name, part in inputs.items()} for kind, inputs in given.parts.items()
    }
    ids = {} if given.position_ids is None else {"position_ids": given.position_ids.to(model.device)}
    return {"part_inputs": parts, **ids}
