"""What is known about an adder's circuit, and how adders that were written by hand are asked for sums.

    place      0   1   2   3   4   5   6   7   8   9   10  11  12  13  14  15  16  17  18  19  20  21  22  23  24
    token      .   a0  a1  a2  a3  a4  a5  0   +   b0  b1  b2  b3  b4  b5  0   =   s0  s1  s2  s3  s4  s5  s6  <end>

Numbers of up to DIGITS digits are written in fields that are one digit longer. So the digits that q_k needs are always
the same number of tokens before it: first a_k and b_k, and one token further back a_{k-1} and b_{k-1}. For k = 0, the
latter are "." and "+", with value 0. If the ones come last, each field is reversed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

import torch

from lab.errors import TaskError
from lab.probing.addition.positions import Written
from lab.probing.bridge import Subject
from lab.probing.components import Component, Site

DIGITS = 6
"""The largest number of digits in an operand."""
FIELD = DIGITS + 1
WORDS = [*"0123456789", "+", "=", ".", "<end>", "<pad>"]
PLUS, EQUALS, BEGIN, END, PAD = range(10, 15)


@dataclass(frozen=True)
class Circuit:
    """What instruments should find in an adder. Nothing else is known about a trained adder."""

    nodes: frozenset[Component]
    """The heads and MLPs that bring the carry into column k, from a_{k-1} and b_{k-1} to the answer's digit."""
    edges: frozenset[tuple[str, str]]
    """Which of them passes the carry to which: names of sender and receiver, such as ("L0H2", "L0 mlp")."""
    carry_sites: tuple[tuple[int, Site], ...]
    """Where later components can read the carry from the residual stream."""
    longest: int = DIGITS
    """The largest number of digits in an operand."""


Facts = TypeVar("Facts", bound=Circuit)


@dataclass(frozen=True, kw_only=True)
class Known(Circuit):
    """What is known about an adder that was written by hand."""

    carry_D: torch.Tensor
    """The unit vector along which the carry is written at q_k."""
    digit_D: torch.Tensor
    """The unit vector along which the answer's digit is written."""
    digit_sites: tuple[tuple[int, Site], ...]
    looks_at: dict[tuple[int, int], tuple[str, int]]
    """By (layer, head), the operand and the offset: from q_k, the head attends only to that operand's digit at place
    k + offset."""
    carry_heads: tuple[tuple[int, int], ...]
    """The heads among `nodes`. Without them, s_0 is still right."""
    digit_heads: tuple[tuple[int, int], ...]
    """The heads that bring the digits to add."""
    decoy: tuple[int, int]
    """A head that attends to a_k and writes along a direction that nothing reads."""
    idle_heads: tuple[tuple[int, int], ...]
    """Heads that attend to all tokens equally and write nothing."""
    directions: dict[str, torch.Tensor] = field(default_factory=dict)
    """Every direction along which something is written, by name."""


class Adder(Subject, Generic[Facts]):
    """A subject whose circuit is known."""

    def __init__(self, subject: Subject, known: Facts) -> None:
        super().__init__(subject.name, subject.bridge, subject.writer)
        self.known = known


KnownAdder: TypeAlias = Adder[Known]
"""An adder that was written by hand."""


class FieldSums:
    """Sums in fields of fixed length. Leading zeros count as digits, up to the length of the sum."""

    pad = PAD

    def __init__(self, ones_first: bool = True, operands: int = 2, complement: bool = False) -> None:
        """How sums are written.

        Args:
            ones_first: whether numbers begin with the ones digit.
            operands: with 3, the second number is written as two numbers, b = b' + b'', that add up without carries.
            complement: whether to write 9 minus each digit of b, which gives another number d. The model then computes
                a + b as a - d - 1, in which the borrow is 1 minus the carry.
        """
        self._order = -1 if ones_first else 1
        self.operands, self._complement = operands, complement
        self.tokens = (operands + 1) * FIELD + operands + 2

    def back(self, number: int, places: int = 0) -> int:
        """How many tokens before q_k the digit of column k - `places` of an operand is, if numbers begin with the ones.
        `number`: 0 for a, 1 for b, and so on."""
        return (self.operands - number) * (FIELD + 1) - 1 + places

    def write(self, a: int, b: int) -> Written:
        """See `SumWriter`; raises TaskError for numbers of more than DIGITS digits."""
        if not 0 <= min(a, b) <= max(a, b) < 10**DIGITS:
            raise TaskError(f"{a} + {b}: the adder takes numbers of at most {DIGITS} digits")
        fields = [self._digits(number) for number in (a, *self._second(b), a + b)]
        if self._complement:
            fields[1] = [9 - digit for digit in fields[1]]
        signs = [*[PLUS] * (self.operands - 1), EQUALS, END]
        ids = [BEGIN, *(token for part, sign in zip(fields, signs, strict=True) for token in (*part, sign))]
        starts = (1, FIELD + 2, self.operands * (FIELD + 1) + 1)
        a_at, b_at, answer_at = (
            list(range(start, start + FIELD))[:: -self._order][: len(str(a + b))] for start in starts
        )
        return Written(ids, a_at, b_at, answer_at, FIELD + 1, self.operands * (FIELD + 1))

    def words(self, ids: Sequence[int]) -> list[str]:
        """See `SumWriter`."""
        return [WORDS[token] for token in ids]

    def digit_ids(self) -> list[int]:
        """See `SumWriter`."""
        return list(range(10))

    def _second(self, b: int) -> list[int]:
        if self.operands == 2:
            return [b]
        # b' gets a third to two thirds of each digit; the share differs from column to column
        part = int("".join(str(int(digit) * (3 + index % 4) // 9) for index, digit in enumerate(str(b))))
        return [part, b - part]

    def _digits(self, number: int) -> list[int]:
        return [int(digit) for digit in f"{number:0{FIELD}d}"[:: self._order]]
