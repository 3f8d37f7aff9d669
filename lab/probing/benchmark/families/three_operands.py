"""Adders of three numbers, a + b' + b''. The last two do not carry between them, so that a carry is 0 or 1."""

from collections.abc import Callable
from functools import partial

from lab.probing.benchmark.families.ones_first import Design, adder
from lab.probing.benchmark.known import KnownAdder

DESIGNS = {
    "three operands": Design(operands=3),
    "three operands, superposed": Design(operands=3, sharp=True, noise=0.03),
}
ADDERS: dict[str, Callable[[int], KnownAdder]] = {
    name: partial(adder, name, design) for name, design in DESIGNS.items()
}
