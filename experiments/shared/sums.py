"""Sums that a script asks an opened model."""

from lab.probing.addition.pairs import operands
from lab.probing.addition.positions import Sums
from lab.probing.bridge import Subject


def drawn(subject: Subject, length: int, first: int, count: int) -> Sums:
    """Uniform sums of numbers of `length` digits: `count` of them, from index `first`."""
    return subject.sums(operands("uniform", length, 0, first + count)[first:])


def of_one_length(length: int, count: int, stream: int = 0) -> list[tuple[int, int]]:
    """The operands of uniform sums that have as many digits as their operands, so that tokens can be compared by
    position: `count` pairs, or fewer if there are not so many of this length. `stream`: another number draws other
    sums."""
    asked = operands("uniform", length, stream, 10 * count)
    return [(a, b) for a, b in asked if len(str(a + b)) == length][:count]
