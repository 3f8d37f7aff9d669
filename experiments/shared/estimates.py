"""Estimates as numbers that JSON can hold, and as cells of a table."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lab.drawing.tables import Shown
from lab.numbers.statistics import Estimate
from lab.probing.measured import Measured


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


def shown(one: Estimate | Measured) -> Shown:
    """An estimate or a single measurement in percent with its interval, whose bounds may be negative."""
    found = Estimate(float(one.value), float(one.low), float(one.high), int(one.n))
    return Shown(found, "{:.0f} ({:.0f} to {:.0f})", 100)
