"""A traced pass as data: nodes, each an allowed operation on earlier values, and the tensors that it starts from.

It came from an untrusted process as JSON and bytes. Once read, it is known to be well-formed, small, and made only of
allowed operations; operations on which no logit depends are left out.

Shapes: T tokens, V tokens in the vocabulary.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch.utils._pytree import tree_leaves, tree_map

from lab.smallest_adder.graph.operations import NUMBER_TYPES, Kind, operation

IDS = 0
MOST_NODES = 5_000
LARGEST_VALUE = 1 << 22
LARGEST_IN_ALL = 1 << 25
"""The most elements that a value may have, and that all values may have together, for one sequence."""


class Value(int):
    """The number of a value among a node's arguments."""


class Node(NamedTuple):
    """An operation, its arguments, and the numbers of the values that it makes."""

    name: str
    function: Any
    kind: Kind
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    results: Sequence[int]

    @property
    def inputs(self) -> list[int]:
        return [int(leaf) for leaf in tree_leaves((self.args, self.kwargs)) if isinstance(leaf, Value)]

    @property
    def settings(self) -> dict[str, Any]:
        """Its arguments by name."""
        names = (argument.name for argument in self.function._schema.arguments)
        return dict(zip(names, self.args, strict=False)) | dict(self.kwargs)

    def places(self, name: str) -> bool:
        """Whether the numbers in an argument are sizes and places, rather than numbers to compute with."""
        kinds = {argument.name: str(argument.type) for argument in self.function._schema.arguments}
        return "int" in kinds[name].lower()

    def __call__(self, values: Mapping[int, torch.Tensor]) -> list[torch.Tensor]:
        def filled(part: Any) -> Any:
            return values[part] if isinstance(part, Value) else part

        function = copied if self.name == "copy" else self.function
        return tree_leaves(function(*tree_map(filled, self.args), **tree_map(filled, self.kwargs)))


def numbers_in(given: Any) -> list[int | float]:
    """The numbers in an argument that the code has written there."""
    return [leaf for leaf in tree_leaves(given) if isinstance(leaf, int | float) and not isinstance(leaf, bool | Value)]


def real_parts(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor in real numbers: those of a complex tensor get a last dimension of two."""
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def copied(to: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
    """What aten.copy does; torch's own has no rule for `vmap`."""
    return numbers.to(to.dtype).expand(to.shape)


class Tensor(NamedTuple):
    """A parameter, a buffer, or another tensor that the pass takes from outside; offset and stride are in elements."""

    value: int | None
    """Its number in the pass, if it is used there."""
    name: str
    kind: str
    trainable: bool
    dtype: str
    storage: int
    offset: int
    shape: Sequence[int]
    stride: Sequence[int]

    @property
    def counts(self) -> bool:
        """Whether the challenge's rule counts the tensor: a parameter, or a buffer of numbers."""
        return self.kind in ("parameter", "buffer") and self.dtype != "bool"

    def of(self, whole: torch.Tensor) -> torch.Tensor:
        """The tensor as a view of its storage `whole`, which is one-dimensional."""
        return whole.as_strided(self.shape, self.stride, self.offset)


class Graph(NamedTuple):
    """A pass over one sequence."""

    ids: Sequence[int]
    """The shape of the ids: a batch of one row, or the row."""
    nodes: Sequence[Node]
    logits: int
    tensors: Sequence[Tensor]
    storages: Mapping[int, torch.Tensor]
    blank: Mapping[int, torch.Tensor]
    """Every value with its shape and type, but without numbers."""

    @property
    def tokens(self) -> int:
        return self.ids[-1]

    @property
    def counted(self) -> set[int]:
        """The storages of what the challenge's rule counts."""
        return {tensor.storage for tensor in self.tensors if tensor.counts}

    @property
    def own(self) -> set[int]:
        """The values that are read from counted storages."""
        counted = self.counted
        return {value for value, tensor in self.leaves.items() if tensor.storage in counted}

    @property
    def leaves(self) -> dict[int, Tensor]:
        return {tensor.value: tensor for tensor in self.tensors if tensor.value is not None}

    def shape(self, value: int) -> torch.Size:
        return self.blank[value].shape

    def is_bool(self, value: int) -> bool:
        return self.blank[value].dtype == torch.bool

    def downstream(self, sources: set[int], by_shape: bool = True) -> set[int]:
        """The values that depend on any of `sources`, and the sources themselves. With `by_shape`, also those that
        depend only on a value's shape."""
        found = set(sources)
        for node in self.nodes:
            if found.intersection(node.inputs) and (by_shape or node.kind is not Kind.MAKE):
                found.update(node.results)
        return found


def read_graph(sent: Any, pieces: Sequence[bytes], tokens: int) -> Graph:
    """Reads the graph of a pass over `tokens` tokens, with the numbers of its tensors in `pieces`.

    Raises ValueError for a graph that is not allowed, and whatever a malformed graph makes torch raise.
    """
    tensors, storages = _tensors(sent["tensors"], pieces)
    if len(sent["nodes"]) > MOST_NODES:
        raise ValueError(f"{len(sent['nodes']):,} operations; at most {MOST_NODES:,}")
    _check_order([tensor.value for tensor in tensors if tensor.value is not None], sent["nodes"])
    needed, nodes = {sent["logits"]}, []
    for written in reversed(sent["nodes"]):
        name, args, kwargs, results = written
        if needed.intersection(results):
            node = Node(*operation(name), _arguments(args), _arguments(kwargs), results)
            if node.settings.get("accumulate") or "reduce" in node.settings:
                node = node._replace(kind=Kind.SUM)
            needed.update(node.inputs)
            nodes.append(node)
    kept = [tensor if tensor.value in needed else tensor._replace(value=None) for tensor in tensors]
    ids = [1, tokens] if sent["batch"] is True else [tokens]
    graph = Graph(ids, nodes[::-1], sent["logits"], kept, storages, {})
    return graph._replace(blank=_blank(graph))


def _check_order(outside: Sequence[int], sent: Any) -> None:
    """Raises ValueError if a value is made twice, or used before it is made."""
    made = [IDS, *outside]
    known = set(made)
    for _, args, kwargs, results in sent:
        used = {int(leaf) for leaf in tree_leaves(_arguments([args, kwargs])) if isinstance(leaf, Value)}
        if not used <= known:
            raise ValueError("a value is used before it is made")
        made += results
        known.update(results)
    if len(known) < len(made) or any(type(value) is not int for value in made):
        raise ValueError("a value is made twice")


def _tensors(sent: Any, pieces: Sequence[bytes]) -> tuple[list[Tensor], dict[int, torch.Tensor]]:
    tensors = [Tensor(**item) for item in sent]
    storages: dict[int, torch.Tensor] = {}
    for tensor in tensors:
        sizes = [*tensor.shape, *tensor.stride, tensor.offset, tensor.storage]
        if any(type(size) is not int or size < 0 for size in sizes):
            raise ValueError(f"{tensor.name}: an impossible shape")
        if tensor.dtype not in NUMBER_TYPES:
            raise ValueError(f"{tensor.name}: numbers of type {tensor.dtype}; allowed: {', '.join(NUMBER_TYPES)}")
        dtype = NUMBER_TYPES[tensor.dtype]
        if tensor.storage not in storages:
            piece = bytearray(pieces[tensor.storage])
            storages[tensor.storage] = torch.frombuffer(piece, dtype=dtype) if piece else torch.empty(0, dtype=dtype)
        if storages[tensor.storage].dtype != dtype:
            raise ValueError("a storage is read as two number types")
    return tensors, storages


def _arguments(sent: Any) -> Any:
    if isinstance(sent, list):
        return [_arguments(part) for part in sent]
    if isinstance(sent, dict) and sent.keys() == {"value"}:
        return Value(sent["value"])
    if isinstance(sent, dict) and sent.keys() == {"type"}:
        return NUMBER_TYPES[sent["type"]]
    return {str(name): _arguments(part) for name, part in sent.items()} if isinstance(sent, dict) else sent


def _blank(graph: Graph) -> dict[int, torch.Tensor]:
    """Every value on torch's device without memory. Raises ValueError if one is too large, or all of them are."""
    values = {IDS: torch.empty(tuple(graph.ids), dtype=torch.int64, device="meta")}
    for value, tensor in graph.leaves.items():
        values[value] = tensor.of(graph.storages[tensor.storage]).to("meta")
    for node in graph.nodes:
        device = {"device": "meta"} if node.kind is Kind.MAKE else {}
        results = node._replace(kwargs={**node.kwargs, **device})(values)
        values.update(zip(node.results, results, strict=True))
        if any(math.prod(result.shape) > LARGEST_VALUE for result in results):
            raise ValueError(f"{node.name}: a value of over {LARGEST_VALUE:,} numbers")
    if (numbers := sum(value.numel() for value in values.values())) > LARGEST_IN_ALL:
        raise ValueError(f"{numbers:,} numbers in all values; at most {LARGEST_IN_ALL:,}")
    return values
