"""Hard additions (lab/numbers/additions.py) turned into problems of other tasks.

A subtraction is the inverse of an addition, sum minus second number: it borrows where the addition carries. A float
addition is an addition of integers with a point in the middle of both numbers.
"""

from collections.abc import Callable

from lab.numbers.additions import addition
from lab.numbers.representations import Float
from lab.numbers.sampling import Problem


def subtraction(stratum: str, length: int, seed: int, index: int) -> Problem:
    """The inverse of `addition` with the same arguments: sum minus second number.

    Its length is that of the addition, although the sum may have one digit more.
    """
    added = addition(stratum, length, seed, index)
    return Problem("sub", "integer", added.answer, added.b, added.a, length)


def float_addition(stratum: str, length: int, seed: int, index: int) -> Problem:
    """`addition` at twice the length, with a point in the middle of its numbers.

    Both parts have up to `length` digits, and chains of carries run across the point.
    """
    added = addition(stratum, 2 * length, seed, index)
    a, b = Float(int(added.a), -length), Float(int(str(added.b)), -length)
    return Problem("add", "float", str(a), str(b), str(a + b), length)


def float_subtraction(stratum: str, length: int, seed: int, index: int) -> Problem:
    """The inverse of `float_addition` with the same arguments: sum minus second number."""
    added = float_addition(stratum, length, seed, index)
    return Problem("sub", "float", added.answer, added.b, added.a, length)


STREAMS: dict[str, Callable[[str, int, int, int], Problem]] = {
    "add_integer": addition,
    "sub_integer": subtraction,
    "add_float": float_addition,
    "sub_float": float_subtraction,
}
"""The tasks that have strata, with the functions that draw them."""
