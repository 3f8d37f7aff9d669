"""Pairs of numbers for the second reading: how they are drawn, laid out in a grid, and what should be written."""

from collections.abc import Sequence
from random import Random

import torch

from experiments.wild.second_reading import OPERATIONS, SIGNS, Grid

Pair = tuple[str, int, int]
"""An operation and its two numbers."""


def drawn(operation: str, longest: int, rng: Random, hard: float = 0.5) -> Pair:
    """A pair with one number of `longest` digits. With probability `hard`, far places decide: many digits add up to
    nine in a sum; the numbers hardly differ in a difference or a comparison."""
    first, second = (rng.randrange(10**length) for length in (longest, rng.randint(1, longest)))
    if rng.random() < hard:
        kind, change = rng.randrange(4), rng.choice((0.02, 0.1, 0.3))
        nines = 10**longest - 1
        if operation == "add" and kind == 0:
            first, second = nines, rng.randrange(10 ** rng.randint(1, longest))
        elif operation == "add":
            second = changed(nines - first, longest, change, rng)
        elif kind == 0:
            first, second = 10 ** (longest - 1), rng.randrange(10 ** rng.randint(1, longest))
        else:
            second = changed(first, longest, change, rng)
    if operation == "subtract":
        return operation, max(first, second), min(first, second)
    return (operation, first, second) if rng.random() < 0.5 else (operation, second, first)


def changed(number: int, length: int, chance: float, rng: Random) -> int:
    """The number with each of its `length` digits drawn anew with a probability."""
    digits = str(number).zfill(length)
    return int("".join(str(rng.randrange(10)) if rng.random() < chance else digit for digit in digits))


def digits(number: int, places: int) -> list[int]:
    return [int(digit) for digit in reversed(str(number).zfill(places))]


def grid(pairs: Sequence[Pair]) -> Grid:
    """The grid of some pairs, with one place more than the longest number."""
    places = 1 + max(len(str(max(pair[1:]))) for pair in pairs)
    numbers = torch.tensor([[digits(first, places), digits(second, places)] for _, first, second in pairs])
    return Grid(numbers[:, 0], numbers[:, 1], torch.tensor([OPERATIONS.index(operation) for operation, _, _ in pairs]))


def expected(pairs: Sequence[Pair], places: int) -> torch.Tensor:
    """What the blanks should turn into, as indexes of SIGNS, (N, P)."""
    return torch.tensor([_expected(*pair, places) for pair in pairs])


def _expected(operation: str, first: int, second: int, places: int) -> list[int]:
    if operation != "compare":
        return digits(first + second if operation == "add" else first - second, places)
    found, sign = [], "="
    for one, other in zip(digits(first, places), digits(second, places), strict=True):
        found.append(SIGNS.index(sign))
        sign = ">" if one > other else "<" if one < other else sign
    return found
