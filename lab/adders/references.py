"""References to the numbers of an adder, and what they stand for.

    0.5, [1, 0], [[1, 2]]        literal numbers
    "name", "-name", "name.T"    a table, minus it, its transpose (and "-name.T")
    ["a", "b"]                   the product of matrices; a single number multiplies what follows
    {"join": ["a", "-b"]}        rows below one another (single numbers: a vector)
    {"transpose": "a"}           the transpose of any reference
    {"ramp": "step"}             0, step, 2 step, ... for the tokens of the vocabulary, one column
    {"arc": [r, start, step]}    r cos and r sin of start + step v for each token v, two columns

`resolve` walks a reference. It is given an algebra: one of shapes (shapes.py), which allocates nothing, or one of
tensors (model.py). Does not import torch.
"""

import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

Reference: TypeAlias = Any
"""Plain JSON in one of the forms above."""
Place: TypeAlias = str
V = TypeVar("V")
NAME = re.compile(r"(-?)([A-Za-z_]\w*)(\.T)?")
FORMS = ("join", "transpose", "ramp", "arc")


class Refused(ValueError):  # noqa: N818
    """Something in an adder's file is not allowed. The text is "place: what was wrong"."""

    def __init__(self, place: Place, text: str) -> None:
        super().__init__(f"{place}: {text}")


class Algebra(Protocol[V]):
    """What references are made of. Each method raises Refused if the parts do not fit."""

    def literal(self, value: Any, place: Place) -> V: ...
    def named(self, name: str, place: Place) -> V: ...
    def negative(self, value: V) -> V: ...
    def transpose(self, value: V, place: Place) -> V: ...
    def product(self, one: V, other: V, place: Place) -> V: ...
    def join(self, parts: Sequence[V], place: Place) -> V: ...
    def ramp(self, step: V, place: Place) -> V: ...
    def arc(self, three: V, place: Place) -> V: ...


def resolve(reference: Reference, algebra: Algebra[V], place: Place) -> V:
    """What a reference stands for. Raises Refused."""
    if is_literal(reference):
        return algebra.literal(reference, place)
    if isinstance(reference, str):
        return _named(reference, algebra, place)
    if isinstance(reference, Sequence) and reference:
        parts = [resolve(part, algebra, f"{place}.{index}") for index, part in enumerate(reference)]
        return functools.reduce(lambda one, other: algebra.product(one, other, place), parts)
    if isinstance(reference, Mapping) and len(reference) == 1 and next(iter(reference)) in FORMS:
        ((form, of),) = reference.items()
        below = f"{place}.{form}"
        if form in ("join", "arc") and isinstance(of, list) and of:
            parts = [resolve(part, algebra, f"{below}.{index}") for index, part in enumerate(of)]
            joined = algebra.join(parts, below)
            return joined if form == "join" else algebra.arc(joined, below)
        if form == "join":
            raise Refused(below, "should be a list of references")
        return getattr(algebra, form)(resolve(of, algebra, below), below)
    allowed = f'should be a number, a list of numbers, "name", "-name", "name.T", or one of {", ".join(FORMS)}'
    raise Refused(place, f"{str(reference)[:60]!r}: {allowed}")


def is_literal(reference: Reference) -> bool:
    """Whether a reference is a number, or a list of numbers or of rows of numbers."""
    if not isinstance(reference, list):
        return is_number(reference)
    rows = reference if all(isinstance(part, list) for part in reference) else [reference]
    return all(bool(row) and all(map(is_number, row)) for row in rows) and bool(reference)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _named(text: str, algebra: Algebra[V], place: Place) -> V:
    found = NAME.fullmatch(text)
    if not found:
        raise Refused(
            place, f'{text[:60]!r}: should be the name of a table, with "-" before it or ".T" after it, or both'
        )
    minus, name, transposed = found.groups()
    value = algebra.named(name, place)
    value = algebra.transpose(value, place) if transposed else value
    return algebra.negative(value) if minus else value
