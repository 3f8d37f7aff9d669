"""The numbers that a model has in its code: each counts, for a number in the code is a weight like any other.

Written numbers are counted as they are; those that everybody knows (0, 1, 2, powers of ten, the square root of a width)
are left out. Tensors that come from outside without being registered, and what the code computes out of nothing, are
described by lines: a ramp, a wave and a causal mask take few numbers, a table takes all of them.
"""

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from lab.smallest_adder.graph.graph import IDS, Graph, Node, Value
from lab.smallest_adder.graph.program import Program

MOST_TO_DESCRIBE = 6
"""Numbers that a tensor in the code may take to be described."""

FAMILIAR = {0.5, 0.044715, math.sqrt(2 / math.pi), 1.702, math.pi, math.pi / 2, 2 * math.pi, math.log(10_000)}
SMALL = 64
"""Whole numbers up to it say which part of a tensor is meant; beyond it they are sizes, or weights."""


class Unregistered(ValueError):  # noqa: N818
    """A tensor of numbers that are neither parameters nor described by a few."""


def literals(graph: Graph, vocabulary: int) -> set[float]:
    """The numbers of a graph's code that a reader has to be told. Raises Unregistered."""
    counted = {tensor.storage for tensor in graph.tensors if tensor.counts}
    own = {value for value, tensor in graph.leaves.items() if tensor.storage in counted}
    learned = graph.downstream({IDS, *own})
    sizes = {1, graph.tokens, vocabulary} | {size for value in own for size in graph.shape(value)}
    fixed = Program(graph).fixed
    told: set[float] = set()
    for value in graph.leaves:
        if value not in own:
            told.update(_described(fixed[value], waves=MOST_TO_DESCRIBE))
    for node in graph.nodes:
        told.update(_written(node, sizes, bool(learned.intersection(node.results))))
        if learned.intersection(node.results):
            for value in node.inputs:
                if value not in learned and value not in graph.leaves:
                    made = _described(fixed[value], waves=0)
                    told.update(made if fixed[value].numel() == 1 else ())
    return {number for number in told if not _familiar(number, sizes)}


def _written(node: Node, sizes: set[int], learned: bool) -> Iterable[float]:
    """The numbers among an operation's arguments; those of its whole numbers that are no size or place."""
    schema = {argument.name: argument for argument in node.function._schema.arguments}
    named = dict(zip(schema, node.args, strict=False)) | dict(node.kwargs)
    for name, given in named.items():
        numbers = [leaf for leaf in tree_leaves(given) if _is_number(leaf)]
        whole = any(word in str(schema[name].type) for word in ("int", "Int"))
        if not whole:
            yield from (float(n) for n in numbers if learned or n not in _parts(sizes))
        elif learned and node.name in ("expand", "repeat"):
            yield from (float(number) for number in numbers if number not in _parts(sizes) and number != -1)
        elif learned and node.name in ("select", "slice", "roll", "constant_pad_nd", "narrow", "index_select"):
            products = {one * other for one in sizes for other in sizes}
            yield from (float(n) for n in numbers if SMALL < abs(n) < 1 << 40 and abs(n) not in products)


def _is_number(leaf: Any) -> bool:
    return isinstance(leaf, int | float) and not isinstance(leaf, bool | Value)


def _familiar(number: float, sizes: set[int]) -> bool:
    if not math.isfinite(number) or abs(number) in (0, 1, 2) or abs(number) > 3e38:
        return True
    size = abs(number)
    if abs(math.log10(size) - round(math.log10(size))) < 1e-7 or any(abs(size - known) < 1e-6 for known in FAMILIAR):
        return True
    powers = (-4, -2) if number.is_integer() else (-4, -2, 2, 4)
    return any(abs(size**power - part) < 1e-4 * part for power in powers for part in _parts(sizes))


def _parts(sizes: set[int]) -> set[int]:
    return {part for size in sizes for part in range(1, min(size, 512) + 1) if size % part == 0} | sizes


def _described(tensor: torch.Tensor, waves: int) -> list[float]:
    """A few numbers that describe a tensor; `waves` is how many of its lines may be waves, 0 for as many as you like.

    Raises Unregistered if it takes more.
    """
    tensor = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    if tensor.numel() == 1:
        return [float(tensor)]
    tensor = tensor.double().squeeze()
    ways = [tensor.movedim(axis, -1).reshape(-1, size) for axis, size in enumerate(tensor.shape)]
    if _diagonal(tensor):
        ways = [tensor[..., [0, -1], :].flatten(0, -2)]
    best: list[float] | None = None
    for lines in ways:
        numbers: list[float] = []
        waving = 0
        for line in torch.unique(lines, dim=0):
            if len(line) > 4 and _is_wave(line):
                waving += 1
            else:
                told = _segments(line.tolist())
                numbers = numbers + told if waves else max(numbers, told, key=len)
        if waves and waving > waves:
            continue
        if best is None or len(numbers) < len(best):
            best = numbers
    if best is None or len(best) > MOST_TO_DESCRIBE:
        raise Unregistered(
            f"a tensor of shape {tuple(tensor.shape)} takes {len(best) if best else 'too many'} numbers to describe"
        )
    return best


def _diagonal(tensor: torch.Tensor) -> bool:
    """Whether it is the same along its diagonals, as masks are."""
    return (
        tensor.ndim > 1
        and tensor.shape[-1] > 2
        and tensor.shape[-2] > 2
        and bool((tensor[..., 1:, 1:] == tensor[..., :-1, :-1]).all())
    )


def _segments(line: list[float]) -> list[float]:
    """The numbers of a line by pieces of ramps: start and step of each; a number alone where there is no ramp."""
    told, place = [], 0
    while place < len(line):
        step = line[place + 1] - line[place] if place + 1 < len(line) else 0.0
        if not math.isfinite(step):
            step = 0.0
        end = place + 1
        while end < len(line) and _near(line[end], line[end - 1] + step):
            end += 1
        told.append(line[place])
        place = end if end - place > 2 else place + 1
    return told


def _near(one: float, other: float) -> bool:
    return one == other or abs(one - other) <= 1e-5 * max(abs(one), abs(other), 1e-3)


def _is_wave(line: torch.Tensor) -> bool:
    """Whether each number follows from the two before it by one rule: sine, cosine, exponential, ramp."""
    if not line.isfinite().all() or not line.any():
        return False
    before, after = torch.stack([line[1:-1], line[:-2]], dim=1), line[2:]
    rule = torch.linalg.lstsq(before, after, driver="gelsd").solution
    return bool((before @ rule - after).abs().max() <= 1e-4 * line.abs().max())
