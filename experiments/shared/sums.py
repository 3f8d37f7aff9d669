"""Sums that a script asks an opened model, and how it shows what was measured."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lab.drawing.tables import Shown
from lab.numbers.additions import addition
from lab.numbers.statistics import Estimate
from lab.probing.bridge import Subject
from lab.probing.measured import Measured
from lab.probing.positions import Sums


def drawn(subject: Subject, length: int, first: int, count: int) -> Sums:
    """Uniform sums of numbers of `length` digits: `count` of them, from index `first`."""
    items = [addition("uniform", length, 0, index) for index in range(first, first + count)]
    return subject.sums([(int(item.a), int(str(item.b))) for item in items])


def of_one_length(length: int, count: int, stream: int = 0) -> list[tuple[int, int]]:
    """The operands of uniform sums that have as many digits as their operands, so that tokens can be compared by
    position: `count` pairs, or fewer if there are not so many of this length. `stream`: another number draws other
    sums."""
    items = (addition("uniform", length, stream, index) for index in range(10 * count))
    return [(int(item.a), int(str(item.b))) for item in items if len(item.answer) == length][:count]


def estimate(one: Measured) -> list[float]:
    """A single measurement as a list that JSON can hold: value, low, high and n."""
    return [value(one.value), value(one.low), value(one.high), int(one.n)]


def estimated(point: Sequence[float]) -> Estimate:
    """What `estimate` made a list of."""
    number, low, high, n = point
    return Estimate(number, low, high, int(n))


def value(number: Any) -> float:
    """A number that JSON can hold: -9 for nan."""
    return float(np.nan_to_num(float(number), nan=-9))


def shown(one: Estimate) -> Shown:
    """An estimate in percent with its interval, whose bounds may be negative."""
    return Shown(one, "{:.0f} ({:.0f} to {:.0f})", 100)
