"""Adders whose design is drawn: the number of layers, the layers that find the digits, the carry and the sum, in how
many parts, decoys, operands and noise. Their weights are written by `ones_first`. Each seed of the benchmark draws
other circuits, so an instrument can be scored on circuits that its makers never saw.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from lab.numbers.philox import philox
from lab.probing.benchmark.families import ones_first
from lab.probing.benchmark.families.ones_first import Design
from lab.probing.benchmark.known import KnownAdder

KINDS = ("smooth", "sharp", "bump")
"""Sharp adders may have parts that instruments miss: a backup head, features in superposition, directions that are not
orthogonal. Adders with a bump have a part that seems to matter and does not."""
_EACH = 6
"""Number of adders of each kind that a seed draws."""


def design(kind: str, number: int, seed: int) -> Design:
    """The design of the adder with this number, of one of `KINDS`."""
    draw = np.random.Generator(philox("drawn adder", seed, kind, number))
    sharp, bump = kind == "sharp", kind == "bump"

    def often(share: float) -> bool:
        return bool(draw.random() < share)

    layers = int(draw.integers(2 + bump, 5))
    digits_in = int(draw.integers(0, layers - 1 - bump))
    between = range(digits_in, layers - 1)
    count = 2 if len(between) > 1 + bump and often(0.4) else 1
    carry_in = tuple(sorted(draw.choice(between, count, replace=False).tolist()))
    borrow = often(0.3)
    # the copy of the carry with the bump is written by an MLP that is not part of the circuit
    bumpy = int(draw.choice([layer for layer in between if layer not in carry_in])) if bump else 0
    return Design(
        layers=layers,
        digits_in=digits_in,
        carry_in=carry_in,
        sum_in=int(draw.integers(max(carry_in[-1], bumpy) + 1, layers)),
        sharp=sharp,
        operands=3 if not borrow and often(0.3) else 2,
        borrow=borrow,
        backup=sharp and often(0.3),
        decoy_carry_in=bumpy if bump else int(draw.integers(digits_in, carry_in[-1] + 1)) if often(0.5) else None,
        bump=bump,
        decoys=int(draw.integers(1, 5)),
        lean=0.1 if sharp and often(0.3) else 0,
        noise=0.03 if sharp and often(0.3) else 0,
    )


def adder(kind: str, number: int, seed: int) -> KnownAdder:
    """The adder of a drawn design."""
    return ones_first.adder(f"drawn, {kind} {number}", design(kind, number, seed), seed)


ADDERS: dict[str, Callable[[int], KnownAdder]] = {
    f"drawn, {kind} {number}": partial(adder, kind, number) for kind in KINDS for number in range(_EACH)
}
