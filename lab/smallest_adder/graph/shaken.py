"""Changes the numbers in a model's code in their fifth digit. A model that then fails hides information in its digits.

Parameters stay as they are, because they are counted. Small whole numbers, powers of ten and numbers that stand for
infinity stay too, because they are described exactly.
"""

import math
import random

import torch
from torch.utils._pytree import tree_map

from lab.smallest_adder.graph.graph import Graph, Node, numbers_in

SHAKEN = 2e-5
"""The relative change of a number, up or down."""
EXACT_BELOW = 1 << 15
"""Whole numbers below this stay."""
INFINITE_ABOVE = 1e38


def shaken_graph(graph: Graph) -> Graph:
    """The graph with slightly wrong numbers in its code, and no other change."""
    counted = graph.counted
    storages = {place: whole if place in counted else _shaken_tensor(whole) for place, whole in graph.storages.items()}
    return graph._replace(nodes=[_shaken_node(node) for node in graph.nodes], storages=storages)


def _shaken_node(node: Node) -> Node:
    names = [argument.name for argument in node.function._schema.arguments]
    args = [_unless(node.places(name), given) for name, given in zip(names, node.args, strict=False)]
    kwargs = {name: _unless(node.places(name), given) for name, given in node.kwargs.items()}
    return node._replace(args=args, kwargs=kwargs)


def _unless(kept: bool, given: object) -> object:
    return given if kept else tree_map(lambda leaf: _shaken(leaf) if numbers_in(leaf) else leaf, given)


def _shaken(number: int | float) -> int | float:
    size = abs(number)
    if not math.isfinite(number) or size > INFINITE_ABOVE or (size == round(size) and size < EXACT_BELOW):
        return number
    if math.isclose(10.0 ** round(math.log10(size)), size, rel_tol=1e-12):
        return number
    moved = number * (1 + SHAKEN * random.Random(repr(number)).choice((-1, 1)))
    return moved if isinstance(number, float) else round(moved)


def _shaken_tensor(whole: torch.Tensor) -> torch.Tensor:
    if whole.dtype == torch.bool:
        return whole
    parts = torch.view_as_real(whole) if whole.is_complex() else whole
    numbers = parts.double()
    kept = ((numbers == numbers.round()) & (numbers.abs() < EXACT_BELOW)) | (numbers.abs() > INFINITE_ABOVE)
    up = torch.randint(0, 2, numbers.shape, generator=torch.Generator().manual_seed(0)) * 2 - 1
    moved = torch.where(kept, parts, (numbers * (1 + SHAKEN * up)).to(parts.dtype))
    return torch.view_as_complex(moved) if whole.is_complex() else moved
