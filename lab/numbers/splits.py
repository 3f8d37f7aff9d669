"""Decides which split a problem belongs to, by a hash of its operands, so that splits cannot overlap.

The seed plays no part: the same operands always land in the same split. Swapped operands are the same problem. Lengths
that are too short to be tested belong to train (Number Cookbook, A.1.8).
"""

from hashlib import blake2b
from typing import Literal

Split = Literal["train", "valid", "test"]

_LONG = (2**32 // 16, 2**32 // 8)
_SHORT = (2**32 // 4, 2**32 // 2)
"""Hashes below the first bound are test, others below the second bound valid. There are few short problems, so a larger
share of them is set aside, to have enough for testing."""

SHORT_LENGTH = 3


def unordered(a: str, b: str | None) -> tuple[str, str]:
    """The operands, or the terms of a sum such as 12+3+45, in a fixed order. Two problems of a task are the same if
    these agree."""
    if b is None:
        return "+".join(sorted(a.split("+"))), ""
    return (a, b) if a <= b else (b, a)


def split_of(representation: str, a: str, b: str | None, length: int, tested: range) -> Split:
    """The split of a question.

    Args:
        representation: the name of the task's representation.
        a: the first operand, as canonical text.
        b: the second operand, if there is one.
        length: the length of the problem, in digits.
        tested: the lengths at which the task is tested.
    """
    if length not in tested:
        return "train"
    first, second = unordered(a, b)
    digest = blake2b(f"{representation}|{first}|{second}".encode(), digest_size=4).digest()
    place = int.from_bytes(digest)
    test, valid = _SHORT if length <= SHORT_LENGTH else _LONG
    return "test" if place < test else "valid" if place < valid else "train"
