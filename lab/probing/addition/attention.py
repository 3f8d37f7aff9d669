"""Which digit each head attends to while a model writes the answer of one sum: `lab ask MODEL "12 + 34"
attention=true`.

lab/probing/addition/alignment.py averages over many sums; this module shows a single sum.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch

from lab.drawing.tables import Table
from lab.probing.bridge import Subject
from lab.probing.contrast import NOWHERE

_AROUND = 2
"""Digits shown on both sides of a digit in a long number."""


class Look(NamedTuple):
    """The operand digit to which a head attends most while a digit of the answer is written."""

    number: str
    """The operand, with its highest digit first."""
    place: int
    """The digit's place value: 0 is the ones."""
    weight: float
    """Its share of the head's attention."""

    def __str__(self) -> str:
        return f"{marked(self.number, self.place)} {100 * self.weight:.0f} %"


class Head(NamedTuple):
    """A head, and the digits to which it attends most."""

    layer: int
    head: int
    looks: Sequence[Look]
    """One for each digit of the answer, from the ones up."""

    @property
    def weight(self) -> float:
        """The mean weight of its looks."""
        return sum(look.weight for look in self.looks) / len(self.looks)


@torch.inference_mode()
def heads(subject: Subject, a: int, b: int) -> list[Head]:
    """What each head attends to while the right answer to a + b is written; heads with the largest weights first."""
    sums = subject.sums([(a, b)])
    places = [*_digits(a, sums.a_at_BK), *_digits(b, sums.b_at_BK)]
    asked = [int(at) for at in sums.query_at_BK[0] if at != NOWHERE]
    names = [f"blocks.{layer}.attn.hook_pattern" for layer in range(subject.layers)]
    _, patterns = subject.activations(sums, names)
    found = []
    for layer, name in enumerate(names):
        looked_HQD = patterns[name][0][:, asked][:, :, [at for *_, at in places]].float()
        weights_HQ, best_HQ = (part.tolist() for part in looked_HQD.max(-1))
        for head, (weights, best) in enumerate(zip(weights_HQ, best_HQ, strict=True)):
            looks = [Look(places[at][0], places[at][1], weight) for at, weight in zip(best, weights, strict=True)]
            found.append(Head(layer, head, looks))
    return sorted(found, key=lambda head: -head.weight)


def _digits(number: int, at_BK: torch.Tensor) -> Iterator[tuple[str, int, int]]:
    """For each digit of the number: the number with leading zeros if the model reads them, the digit's place, and its
    token."""
    at = [int(token) for token in at_BK[0] if token != NOWHERE]
    written = str(number).zfill(len(at))
    return ((written, place, token) for place, token in enumerate(at))


def marked(number: str, place: int) -> str:
    """The number with brackets around the digit of a place. A long number is shortened to the digits near it.

    >>> marked("123", 0), marked("12345678901", 5)
    ('12[3]', '…45[6]78…')
    """
    at = len(number) - 1 - place
    before, after = number[:at], number[at + 1 :]
    before = f"…{before[-_AROUND:]}" if len(before) > 2 * _AROUND else before
    after = f"{after[:_AROUND]}…" if len(after) > 2 * _AROUND else after
    return f"{before}[{number[at]}]{after}"


def table(subject: Subject, a: int, b: int, columns: int = 6) -> Table:
    """A row for each digit of the answer, and a column for each of the heads that attend to digits most."""
    some = heads(subject, a, b)[:columns]
    answer = str(a + b)
    looks = zip(*(head.looks for head in some), strict=True)
    rows = [(marked(answer, place), *map(str, found)) for place, found in enumerate(looks)]
    title = f"{a} + {b}: the digit that a head looks at most while it writes a digit of the answer"
    return Table(title, ("writes", *(f"L{head.layer}H{head.head}" for head in some)), rows, 1)
