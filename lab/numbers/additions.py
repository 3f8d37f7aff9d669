"""Additions that are harder than those of uniform digits: long carries, and numbers of very different lengths.

If the digits of both numbers are uniform, carries rarely run over more than three places. So neither training on such
pairs nor testing on them says much about carries (Quirke and Barez 2023 also reweight theirs). The strata, at a length
of L digits:

    uniform      both numbers have L uniform digits
    carries      some digits of the second are 9 minus those of the first, at a rate drawn for each problem, so that
                 carries run over several places
    nines_short  99...9 (L digits) and a number of 1 to 4 digits, in either order: the carry runs through all places
    nines        99...9 (L digits) and a uniform number of L digits
"""

from collections.abc import Callable, Iterable

import numpy as np

from lab.errors import TaskError
from lab.numbers.philox import philox
from lab.numbers.representations import Float
from lab.numbers.sampling import Cell, Problem, task_of
from lab.numbers.splits import split_of

_RATES = 2**16


def _digits(length: int, generator: np.random.Philox) -> list[int]:
    """The digits of a number of that length; the first digit is not 0."""
    words = generator.random_raw(length).tolist()
    return [1 + words[0] % 9, *(word % 10 for word in words[1:])]


def _complemented(a: list[int], b: list[int], generator: np.random.Philox) -> list[int]:
    """`b`, which is no longer than `a`, with some digits replaced by 9 minus the digit of `a` in the same place; such
    places pass a carry on.

    A rate is drawn first; each digit is then replaced with that probability.
    """
    rate, *words = (word % _RATES for word in generator.random_raw(len(b) + 1).tolist())
    below = a[len(a) - len(b) :]
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
    """Problem number `index` of an endless stream of integer additions. Raises TaskError for an unknown stratum.

    The stream has no splits: it is meant for lengths that no model was trained on.

    Args:
        stratum: one of STRATA.
        length: digits of the longer number.
        seed: selects the stream.
        index: the problem's number in the stream.
    """
    if stratum not in STRATA:
        raise TaskError(f"stratum {stratum!r} is not known; known: {', '.join(STRATA)}")
    a, b = map(_text, STRATA[stratum](length, philox("stratum", stratum, length, seed, index)))
    return Problem("add", "integer", a, b, str(int(a) + int(b)), length)


VARIED = ("add_integer", "sub_integer", "add_float", "sub_float")
"""The tasks whose training problems can be made harder."""


def unequal_pairs(cells: Iterable[Cell], short_second: float) -> str:
    """What a training on these cells leaves out, in a sentence; "" if nothing.

    The sampler gives the second number at least half as many digits as the first. From four digits on, some pairs of
    lengths therefore never occur, unless `vary` shortens numbers.

    Args:
        cells: the tasks and lengths of the training.
        short_second: how often `vary` shortens a number.
    """
    longest = max((cell.length for cell in cells if cell.task.key in VARIED), default=0)
    if short_second or longest // 2 < 2:
        return ""
    sum_ = f"{'9' * longest} + 1"
    return f"In training, no number had less than half as many digits as the other: {sum_} may be wrong."


def vary(item: Problem, carries: float, short_second: float, nines: float, seed: int, index: int) -> Problem:
    """A training problem of addition or subtraction, made harder with certain probabilities.

    A subtraction a - b = c is varied as the addition c + b = a. In the arguments below, the first number is the longer
    one; the order of both numbers in the result is random. Problems of other tasks stay as they are, and so does a
    problem that would become longer or leave the training split.

    Args:
        item: the problem.
        carries: probability that some digits of the second number become 9 minus those of the first, unless the first
            becomes all nines.
        short_second: probability that the second number gets a random length, from 1 to that of the first. It is never
            0.
        nines: probability that the first number becomes all nines.
        seed: selects the stream of draws.
        index: the problem's number in the stream.
    """
    task = task_of(item)
    if task.key not in VARIED or item.b is None:
        return item
    subtracts = task.name == "sub"
    a, b, decimals = _aligned(item.answer if subtracts else item.a, item.b)
    generator = philox("variation", seed, index)
    shortened, complemented, nined, swapped = (word / 2**64 for word in generator.random_raw(4).tolist())
    a, b = (a, b) if len(a) >= len(b) else (b, a)
    if shortened < short_second:
        b = _digits(1 + int(generator.random_raw()) % len(a), generator)
    if nined < nines:
        a = [9] * max(1, len(a) - subtracts)  # the sum has one digit more; in a subtraction it is an operand
        b = b[-len(a) :]
    elif complemented < carries:
        b = _complemented(a, b, generator)
    first, second = int(_text(a)), int(_text(b))
    first, second = (first, second) if swapped < 0.5 else (second, first)
    numbers = (first + second, second, first) if subtracts else (first, second, first + second)
    texts = [str(Float(number, -decimals)) if task.representation is Float else str(number) for number in numbers]
    length = max(len(part) for text in texts[:2] for part in text.split("."))
    changed = item._replace(a=texts[0], b=texts[1], answer=texts[2], length=length)
    fits = length <= item.length
    kept = fits and split_of(item.representation, texts[0], texts[1], length, task.tested_lengths) == "train"
    return changed if kept else item


def _aligned(a: str, b: str) -> tuple[list[int], list[int], int]:
    """The digits of two integers or floats down to the same decimal, and how many decimals that makes."""
    decimals = max(len(number.partition(".")[2]) for number in (a, b))
    whole = [number.partition(".")[0] + number.partition(".")[2].ljust(decimals, "0") for number in (a, b)]
    first, second = ([int(digit) for digit in str(int(text))] for text in whole)
    return first, second, decimals


def _text(digits: list[int]) -> str:
    return "".join(map(str, digits))
