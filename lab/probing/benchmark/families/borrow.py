"""Subtractors: what is borrowed from a column is found from d + s - a below, and digit = a - d - borrow, or 10 more.

They compute a - d - 1, ones first. To the lab this is the addition a + b of b = 99...9 - d, whose digits are the same
and whose carry is 1 minus what is borrowed, so that every instrument applies as it stands (`FieldSums`).
"""

from collections.abc import Callable
from functools import partial

from lab.probing.benchmark.families.ones_first import Design, adder
from lab.probing.benchmark.known import KnownAdder

DESIGNS = {
    "borrow": Design(borrow=True),
    "borrow, sharp": Design(borrow=True, sharp=True),
    "borrow, three layers": Design(borrow=True, layers=3, sum_in=2),
}
ADDERS: dict[str, Callable[[int], KnownAdder]] = {
    name: partial(adder, name, design) for name, design in DESIGNS.items()
}
