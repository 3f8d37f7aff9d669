"""How large a submission is, by the challenge's rule and by others' beside it.

The rule: distinct storage elements of all parameters, trainable and frozen, and of non-boolean buffers. Counting
tensors by the `data_ptr` of the first one seen, as the public verifier does, is fooled by a small view that is
registered first.
"""

import ast
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np


class Tensor(NamedTuple):
    """A parameter or buffer, as far as it matters to counting; offset and stride are in elements."""

    name: str
    kind: str
    dtype: str
    trainable: bool
    storage: int
    offset: int
    shape: Sequence[int]
    stride: Sequence[int]
    bits: int

    def elements(self) -> np.ndarray:
        """The places in its storage that it covers."""
        places = np.array([self.offset])
        for size, stride in zip(self.shape, self.stride, strict=True):
            # An expanded dimension repeats the same places.
            steps = np.arange(size if stride else min(size, 1)) * stride
            places = np.unique(places[:, None] + steps)
        return places


class Counts(NamedTuple):
    parameters: int
    """By the challenge's rule; what a submission is ranked by."""
    trainable: int
    buffers_free: int
    """Parameters alone: the literature's count, where fixed position tables are free."""
    by_data_ptr: int
    """What the public verifier counts."""
    bits: int
    literals: int
    """Numbers written in the source."""


def count(tensors: Sequence[Tensor], source: str) -> Counts:
    rule = [tensor for tensor in tensors if tensor.kind == "parameter" or tensor.dtype != "bool"]
    parameters = [tensor for tensor in rule if tensor.kind == "parameter"]
    first_seen = {(tensor.storage, tensor.offset): tensor for tensor in reversed(rule)}
    return Counts(
        distinct(rule),
        distinct(tensor for tensor in parameters if tensor.trainable),
        distinct(parameters),
        sum(int(np.prod(tensor.shape)) for tensor in first_seen.values()),
        distinct(rule, weighted=True),
        literals(source),
    )


def distinct(tensors: Iterable[Tensor], weighted: bool = False) -> int:
    """Distinct elements, or with `weighted` their bits."""
    places: dict[tuple[int, int], list[np.ndarray]] = {}
    for tensor in tensors:
        places.setdefault((tensor.storage, tensor.bits), []).append(tensor.elements())
    return sum(len(np.unique(np.concatenate(parts))) * (bits if weighted else 1) for (_, bits), parts in places.items())


def literals(source: str) -> int:
    return sum(
        isinstance(node, ast.Constant) and type(node.value) in (int, float, complex)
        for node in ast.walk(ast.parse(source))
    )


def tensors_of(described: Any) -> list[Tensor]:
    """From a process that may send anything. Raises ValueError."""
    if type(described) is not list or len(described) > 10_000:
        raise ValueError("a list of at most 10,000 parameters and buffers was expected")
    tensors = []
    for item in described:
        tensor = Tensor(**item)
        sizes = [*tensor.shape, *tensor.stride, tensor.offset, tensor.storage, tensor.bits]
        if any(type(size) is not int or size < 0 for size in sizes) or np.prod([1.0, *tensor.shape]) > 1e8:
            raise ValueError(f"{tensor.name}: shape {tensor.shape}; at most 100,000,000 elements")
        tensors.append(tensor)
    return tensors
