"""The numbers that a model has in its code. Each counts, because a number in the code is a weight like any other.

Written numbers are counted as they are; those that everybody knows (0, 1, 2, powers of ten, the square root of a width)
are left out. Tensors that come from outside without being registered, and tensors that the code makes without any
input, are counted by the numbers that describe their lines: few for a ramp, a wave or a causal mask, all of them for a
table.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from lab.smallest_adder.graph.flow import MOST_EXTRA_KEYS
from lab.smallest_adder.graph.graph import IDS, Graph, Node, Tensor, Value
from lab.smallest_adder.graph.operations import Kind
from lab.smallest_adder.graph.program import Program

MOST_TO_DESCRIBE = 6
"""The most numbers that the description of a tensor in the code may take."""

FAMILIAR = {0.5, 0.044715, math.sqrt(2 / math.pi), 1.702, math.pi, math.pi / 2, 2 * math.pi, math.log(10_000)}
SMALL = 64
"""Whole numbers up to this only select a part of a tensor; larger ones are sizes, or weights."""
PLACING = ("select", "slice", "roll", "constant_pad_nd", "narrow", "index_select")


class Unregistered(ValueError):  # noqa: N818
    """A tensor whose numbers are not parameters, and cannot be described by a few numbers."""


def literals(graph: Graph, vocabulary: int) -> set[float]:
    """The numbers in a graph's code that count: those that a reader could not know without being told.

    `vocabulary`: its size. Raises Unregistered.
    """
    counted = {tensor.storage for tensor in graph.tensors if tensor.counts}
    own = {value for value, tensor in graph.leaves.items() if tensor.storage in counted}
    learned = graph.downstream({IDS, *own})
    sizes = {1, graph.tokens, vocabulary} | {size for value in own for size in _paid(graph.leaves[value])}
    products = {one * other for one in _parts(sizes) for other in _parts(sizes)}
    products |= set(range(graph.tokens + MOST_EXTRA_KEYS + 1))  # the number of tokens, and every smaller one
    fixed = Program(graph).fixed
    told = {float(size) for value in own for size in graph.shape(value) if size not in products}
    for value in graph.leaves:
        if value not in own:
            told.update(_described(fixed[value], outside=True))
    for node in graph.nodes:
        is_learned = bool(learned.intersection(node.results))
        told.update(_written(node, sizes, products, is_learned))
        if is_learned:
            told.update(float(size) for value in node.results for size in graph.shape(value) if size not in products)
            for value in node.inputs:
                if value not in learned and value not in graph.leaves:
                    made = _described(fixed[value], outside=False)
                    told.update(made if fixed[value].numel() == 1 else ())
    return {float(f"{number:.5g}") for number in told if not _familiar(number, sizes)}


def _paid(tensor: Tensor) -> list[int]:
    """The sizes of a parameter. Empty if it shows a number several times or has no numbers, because then its sizes are
    larger than what it costs."""
    spread = [size for size, stride in zip(tensor.shape, tensor.stride, strict=True) if size > 1]
    packed = all(stride for size, stride in zip(tensor.shape, tensor.stride, strict=True) if size > 1)
    return spread if packed and math.prod(tensor.shape) else []


def _written(node: Node, sizes: set[int], products: set[int], learned: bool) -> Iterable[float]:
    """The numbers among an operation's arguments; of whole numbers, only those that are neither a size nor a place."""
    schema = {argument.name: argument for argument in node.function._schema.arguments}
    named = dict(zip(schema, node.args, strict=False)) | dict(node.kwargs)
    for name, given in named.items():
        numbers = [leaf for leaf in tree_leaves(given) if _is_number(leaf)]
        if not any(word in str(schema[name].type) for word in ("int", "Int")):
            yield from (float(n) for n in numbers if learned or n not in _parts(sizes))
        elif node.kind is Kind.MAKE or (learned and node.name in PLACING):
            least = 0 if node.kind is Kind.MAKE else SMALL
            yield from (float(n) for n in numbers if least < abs(n) < 1 << 40 and abs(n) not in products)


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


def _described(tensor: torch.Tensor, outside: bool) -> list[float]:
    """A few numbers that describe a tensor, line by line, along whichever axis takes fewest.

    A tensor from `outside` is described in full. A tensor that is made in the pass has waves and lines that follow from
    numbers which were counted before, so only what a single line takes is returned. Raises Unregistered if it takes
    more than `MOST_TO_DESCRIBE` numbers.
    """
    tensor = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    if tensor.numel() == 1:
        return [float(tensor)]
    tensor = tensor.double().squeeze()
    ways = [_lines(tensor.movedim(axis, -1)) for axis in range(tensor.ndim)]
    if _diagonal(tensor):  # from the diagonal on, so that nothing depends on how many tokens there are
        ways = [[*_lines(tensor[..., 0, :]), *_lines(tensor[..., :, 0])]]
    best: tuple[list[float], list[float]] | None = None
    for lines in ways:
        told = [_line(line, outside) for line in lines]
        all_told = [number for numbers, _ in told for number in numbers]
        numbers = all_told if outside else max((numbers for numbers, _ in told), key=len)
        if best is None or len(numbers) < len(best[0]):
            best = numbers, [place for _, places in told for place in places]
    if best is None or len(best[0]) > MOST_TO_DESCRIBE:
        raise Unregistered(
            f"a tensor of shape {tuple(tensor.shape)} takes {len(best[0]) if best else 'too many'} numbers to describe"
        )
    return [*best[0], *best[1]]


def _lines(tensor: torch.Tensor) -> Sequence[torch.Tensor]:
    return list(torch.unique(tensor.reshape(-1, tensor.shape[-1]), dim=0))


def _diagonal(tensor: torch.Tensor) -> bool:
    """Whether the tensor is constant along its diagonals, as masks are."""
    return (
        tensor.ndim > 1
        and tensor.shape[-1] > 2
        and tensor.shape[-2] > 2
        and bool((tensor[..., 1:, 1:] == tensor[..., :-1, :-1]).all())
    )


def _line(line: torch.Tensor, outside: bool) -> tuple[list[float], list[float]]:
    """The numbers that describe a line, and the places where its pieces begin."""
    numbers, places = _segments(line.tolist())
    order = 2 if outside else 3  # 3 allows squares too, because they are made in the pass
    if len(numbers) > 2 and len(line) > 2 * order and _is_wave(line, order):
        return (_wave(line) if outside else []), []
    return numbers, places


def _wave(line: torch.Tensor) -> list[float]:
    """The numbers that describe a wave: the angle of a plain sine or cosine; otherwise four numbers, as many as
    amplitude, phase, rate and decay."""
    first, second = line[:2].clamp(-1, 1).tolist()
    turns = torch.arange(len(line), dtype=line.dtype)
    for angle, wave in ((math.acos(second), torch.cos), (math.asin(second), torch.sin)):
        if abs(first - float(wave(torch.zeros(())))) < 1e-6 and torch.allclose(wave(angle * turns), line, atol=1e-3):
            return [angle]
    return line[:4].tolist()


def _segments(line: list[float]) -> tuple[list[float], list[float]]:
    """The numbers of a line in pieces: start and step of a ramp, or a single number; and where the pieces begin."""
    told, places, place = [], [], 0
    while place < len(line):
        step = line[place + 1] - line[place] if place + 1 < len(line) else 0.0
        if not math.isfinite(step):
            step = 0.0
        end = place + 1
        while end < len(line) and _near(line[end], line[end - 1] + step):
            end += 1
        is_ramp = end - place > 2
        told += [line[place], step] if is_ramp and step else [line[place]]
        places += [float(place)] if place else []
        place = end if is_ramp else place + 1
    return told, places


def _near(one: float, other: float) -> bool:
    return one == other or abs(one - other) <= 1e-5 * max(abs(one), abs(other), 1e-3)


def _is_wave(line: torch.Tensor, order: int) -> bool:
    """Whether each number is the same linear function of the `order` numbers before it, as in sines, exponentials and
    ramps; with order 3, in squares too."""
    if not line.isfinite().all() or not line.any():
        return False
    before = torch.stack([line[place : place - order] for place in range(order)], dim=1)
    after = line[order:]
    rule = torch.linalg.lstsq(before, after, driver="gelsd").solution
    return bool((before @ rule - after).abs().max() <= 1e-4 * line.abs().max())
