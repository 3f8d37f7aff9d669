"""Additions that are harder than those of uniform digits: long carries, and numbers of very different lengths.

Of two uniform numbers hardly any pair carries over more than three places, so neither training nor a test on them says
much about carries (Quirke and Barez 2023 reweight theirs too). Strata, at a length of L digits:

    uniform      both numbers have L digits
    carries      digits of the second are 9 minus those of the first, at a rate drawn for each problem: chains
    nines_short  99...9 of L digits and a number of 1 to 4, or the other way round: the carry runs through all places
    nines        99...9 of L digits and a uniform number of L

A subtraction is one of these turned round, sum minus second number: it borrows where the addition carries. One of
floats is one with a point in the middle.
"""

from collections.abc import Callable

import numpy as np

from lab.errors import TaskError
from lab.numbers.representations import Float, Integer
from lab.numbers.sampling import Problem, philox, task_of
from lab.numbers.splits import split_of

_RATES = 2**16


def _digits(length: int, generator: np.random.Philox) -> list[int]:
    """A number of that many digits; its first digit is not 0."""
    words = generator.random_raw(length).tolist()
    return [1 + words[0] % 9, *(word % 10 for word in words[1:])]


def _complemented(a: list[int], b: list[int], generator: np.random.Philox) -> list[int]:
    """`b`, aligned to the ones digit of `a`, with digits that carry on a carry wherever a draw below the rate says."""
    rate, *words = (word % _RATES for word in generator.random_raw(len(b) + 1).tolist())
    below = a[len(a) - len(b) :] if len(b) <= len(a) else [0] * (len(b) - len(a)) + a
    changed = [9 - under if word < rate else digit for digit, under, word in zip(b, below, words, strict=True)]
    return [changed[0] or b[0], *changed[1:]]  # a number does not begin with 0


def _uniform(length: int, generator: np.random.Philox) -> tuple[list[int], list[int]]:
    return _digits(length, generator), _digits(length, generator)


def _carries(length: int, generator: np.random.Philox) -> tuple[list[int], list[int]]:
    a, b = _uniform(length, generator)
    return a, _complemented(a, b, generator)


def _nines_short(length: int, generator: np.random.Philox) -> tuple[list[int], list[int]]:
    word = int(generator.random_raw())
    pair = [9] * length, _digits(1 + word % min(4, length), generator)
    return pair if word >> 32 & 1 else pair[::-1]  # type: ignore[return-value]


def _nines(length: int, generator: np.random.Philox) -> tuple[list[int], list[int]]:
    return [9] * length, _digits(length, generator)


STRATA: dict[str, Callable[[int, np.random.Philox], tuple[list[int], list[int]]]] = {
    "uniform": _uniform,
    "carries": _carries,
    "nines_short": _nines_short,
    "nines": _nines,
}


def addition(stratum: str, length: int, seed: int, index: int) -> Problem:
    """Problem number `index` of an endless stream of integer additions; raises TaskError for an unknown stratum.

    The stream knows no splits: it is for lengths that no training had.
    """
    if stratum not in STRATA:
        raise TaskError(f"stratum {stratum!r} is not known; known: {', '.join(STRATA)}")
    a, b = STRATA[stratum](length, philox("stratum", stratum, length, seed, index))
    return _problem(_text(a), _text(b), length)


def subtraction(stratum: str, length: int, seed: int, index: int) -> Problem:
    """`addition` of the same arguments turned round, and of its length, though the sum may have a digit more."""
    added = addition(stratum, length, seed, index)
    return Problem("sub", "integer", added.answer, added.b, added.a, length)


def float_addition(stratum: str, length: int, seed: int, index: int) -> Problem:
    """`addition` at twice the length with a point in the middle of its numbers: both parts have up to `length` digits,
    and chains of carries go through the point.
    """
    added = addition(stratum, 2 * length, seed, index)
    a, b = Float(int(added.a), -length), Float(int(str(added.b)), -length)
    return Problem("add", "float", str(a), str(b), str(a + b), length)


STREAMS: dict[str, Callable[[str, int, int, int], Problem]] = {
    "add_integer": addition,
    "sub_integer": subtraction,
    "add_float": float_addition,
}
"""Tasks that have strata."""


def vary(item: Problem, carries: float, short_second: float, nines: float, seed: int, index: int) -> Problem:
    """A training problem of integer addition made harder, with these probabilities, or itself.

    short_second: the second number has any length from 1 up. carries: digits of it are 9 minus those of the first, at a
    rate of its own. nines: the first number is all nines. Either number may come first. A problem that would thereby
    leave the training split stays as it is. Raises TaskError for other tasks.
    """
    if (item.task, item.representation) != ("add", "integer"):
        raise TaskError(f"data.variation is of add_integer alone, and data.tasks has {task_of(item).key}")
    generator = philox("variation", seed, index)
    shortened, complemented, nined, swapped = (word / 2**64 for word in generator.random_raw(4).tolist())
    a, b = [int(digit) for digit in item.a], [int(digit) for digit in str(item.b)]
    a, b = (a, b) if len(a) >= len(b) else (b, a)
    if shortened < short_second:
        b = _digits(1 + int(generator.random_raw()) % len(a), generator)
    if nined < nines:
        a = [9] * len(a)
    elif complemented < carries:
        b = _complemented(a, b, generator)
    a, b = (a, b) if swapped < 0.5 else (b, a)
    changed = _problem(_text(a), _text(b), item.length)
    tested = task_of(item).tested_lengths
    return changed if split_of("integer", changed.a, changed.b, item.length, tested) == "train" else item


def _text(digits: list[int]) -> str:
    return "".join(map(str, digits))


def _problem(a: str, b: str, length: int) -> Problem:
    return Problem("add", "integer", a, b, str(Integer(int(a) + int(b))), length)
