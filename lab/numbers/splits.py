"""Which split a problem belongs to: decided by a hash of its operands, so that splits cannot overlap.

Whatever the seed, a task's operands land in the same split; swapped operands are the same problem. Lengths that a task
is not tested at, too short ones, belong to train (Number Cookbook, A.1.8).
"""

from hashlib import blake2b
from typing import Literal

Split = Literal["train", "valid", "test"]

_LONG = (2**32 // 16, 2**32 // 8)
_SHORT = (2**32 // 4, 2**32 // 2)
"""Hashes below the first bound are test, below the second valid. Short spaces are small: a larger share of them
leaves enough to test."""

SHORT_LENGTH = 3


def unordered(a: str, b: str | None) -> tuple[str, str]:
    """What makes two problems of a task the same: their operands, in whichever order."""
    if b is None:
        return a, ""
    return (a, b) if a <= b else (b, a)


def split_of(representation: str, a: str, b: str | None, length: int, tested: range) -> Split:
    """The split of a question with canonical operands `a` and `b`, at a length of a task with `tested` lengths."""
    if length not in tested:
        return "train"
    first, second = unordered(a, b)
    digest = blake2b(f"{representation}|{first}|{second}".encode(), digest_size=4).digest()
    place = int.from_bytes(digest)
    test, valid = _SHORT if length <= SHORT_LENGTH else _LONG
    return "test" if place < test else "valid" if place < valid else "train"
