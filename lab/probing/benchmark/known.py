"""What is true of an adder, and how adders that were written by hand are asked.

    place      0   1   2   3   4   5   6   7   8   9   10  11  12  13  14  15  16  17  18  19  20  21  22  23  24
    token      .   a0  a1  a2  a3  a4  a5  0   +   b0  b1  b2  b3  b4  b5  0   =   s0  s1  s2  s3  s4  s5  s6  <end>

Numbers of up to DIGITS digits stand in fields of one digit more, so whatever the digit asked for at q_k needs is a
fixed number of tokens before: a_k, b_k, and one further on a_{k-1}, b_{k-1}, which for the ones are "." and "+", of
value 0. With the ones last, fields are turned round.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

import torch

from lab.errors import TaskError
from lab.probing.bridge import Subject
from lab.probing.components import Component
from lab.probing.interventions import Site
from lab.probing.positions import Written

DIGITS = 6
"""The largest number of digits in an operand."""
FIELD = DIGITS + 1
WORDS = [*"0123456789", "+", "=", ".", "<end>", "<pad>"]
PLUS, EQUALS, BEGIN, END, PAD = range(10, 15)


@dataclass(frozen=True)
class Circuit:
    """What is true of an adder, for instruments to find. No more is known of a trained adder."""

    nodes: frozenset[Component]
    """Heads and MLPs that the carry into a column comes through, a_{k-1} and b_{k-1} to the digit."""
    edges: frozenset[tuple[str, str]]
    """What they tell each other, by the names of sender and receiver: ("L0H2", "L0 mlp")."""
    carry_sites: tuple[tuple[int, Site], ...]
    """Where the carry is read from the stream by what comes after."""
    longest: int = DIGITS
    """The largest number of digits in an operand."""


Facts = TypeVar("Facts", bound=Circuit)


@dataclass(frozen=True, kw_only=True)
class Known(Circuit):
    """What is true of an adder that was written by hand."""

    carry_D: torch.Tensor
    """The unit vector that the carry is written along at q_k."""
    digit_D: torch.Tensor
    """The same of the answer's digit, once it has been added up."""
    digit_sites: tuple[tuple[int, Site], ...]
    looks_at: dict[tuple[int, int], tuple[str, int]]
    """(layer, head) to (operand, offset): from q_k, all of its attention is on that operand's digit k + offset."""
    carry_heads: tuple[tuple[int, int], ...]
    """Heads of `nodes`. Without them s_0 stays right."""
    digit_heads: tuple[tuple[int, int], ...]
    """What the digits to be added come from."""
    decoy: tuple[int, int]
    """Looks at a_k and writes to where nobody reads."""
    idle_heads: tuple[tuple[int, int], ...]
    """Look at all tokens alike and write nothing."""
    directions: dict[str, torch.Tensor] = field(default_factory=dict)
    """All that is written to the stream, by name."""


class Adder(Subject, Generic[Facts]):
    """A subject whose circuit is known."""

    def __init__(self, subject: Subject, known: Facts) -> None:
        super().__init__(subject.name, subject.bridge, subject.writer)
        self.known = known


KnownAdder: TypeAlias = Adder[Known]
"""One that was written by hand."""


class FieldSums:
    """Sums in fields of fixed length. Zeros that fill fields are digits as far as the sum reaches."""

    pad = PAD

    def __init__(self, ones_first: bool = True, operands: int = 2, complement: bool = False) -> None:
        """`operands`: with 3, the second number stands as two whose digits do not carry between them, b = b' + b''.
        `complement`: each digit of the second number stands as 9 minus it, so that a + b reads as a - b' - 1 in which
        what is borrowed is 1 minus what is carried."""
        self._order = -1 if ones_first else 1
        self.operands, self._complement = operands, complement
        self.tokens = (operands + 1) * FIELD + operands + 2

    def back(self, number: int, places: int = 0) -> int:
        """How many tokens before q_k the digit of an operand (0 is a) stands, `places` columns below k, ones first."""
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
        # a third of each digit or so, by a rule that no column shares
        part = int("".join(str(int(digit) * (3 + place % 4) // 9) for place, digit in enumerate(str(b))))
        return [part, b - part]

    def _digits(self, number: int) -> list[int]:
        return [int(digit) for digit in f"{number:0{FIELD}d}"[:: self._order]]
