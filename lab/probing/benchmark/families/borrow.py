"""Subtractors: the borrow is found from d + s - a in the column below, and the digit is a - d - borrow, or 10 more.

They compute a - d - 1, ones first. For the lab this is the addition a + b with b = 99...9 - d, which has the same
digits and in which the carry is 1 minus the borrow. So every instrument works unchanged (`FieldSums`).
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
