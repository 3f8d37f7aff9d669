"""Pairs of numbers for the second reading: how they are drawn, and what should be written."""

from collections.abc import Sequence
from random import Random

import torch

from lab.second_reading.adapted import SIGNS, digits

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


STRATA = ("uniform", "unequal", "nines and a short number", "long chain")


def strata_pair(stratum: str, length: int, rng: Random) -> tuple[str, str]:
    """Two numbers; the longer one has `length` digits."""
    one = rng.randrange(10 ** (length - 1), 10**length)
    other = rng.randrange(10 ** (length - 1), 10**length)
    if stratum == "unequal":
        other = rng.randrange(10 ** rng.randint(1, max(1, length // 2)))
    if stratum == "nines and a short number":
        one, other = 10**length - 1, rng.randint(1, 99)
    if stratum == "long chain":  # all digits add up to nine, but for a carry that starts at the lowest place
        one = int("".join(str(rng.randint(1, 8)) for _ in range(length)))
        other = 10**length - 1 - one + rng.randint(0, 1)
    pair = [str(one), str(other)]
    rng.shuffle(pair)
    return pair[0], pair[1]
