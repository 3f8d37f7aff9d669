"""Signed decimal numbers, and how three operations on digits compute what is asked of them.

The operations are the second reading's: `add`, `subtract` and `compare` on digits without sign and point. What is told
here is what is done with them: signs, points, and that three terms are two sums.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple, TypeAlias

Write: TypeAlias = Callable[[str, int, int], str]
"""What the second reading writes, given an operation and two numbers: digits, highest first, or a sign (< = >)."""


class Signed(NamedTuple):
    """A number: its sign, 1 or -1; its digits; and how many of them are behind the point."""

    sign: int
    digits: int
    decimals: int

    @classmethod
    def read(cls, text: str, sign: int = 1) -> "Signed":
        """The number that is written as `text`, perhaps with a point and with commas between thousands."""
        whole, _, behind = text.replace(",", "").partition(".")
        return cls(sign, int(whole + behind), len(behind))

    def written(self, grouped: bool) -> str:
        digits = str(self.digits).zfill(self.decimals + 1)
        whole, behind = digits[: len(digits) - self.decimals], digits[len(digits) - self.decimals :]
        whole = f"{int(whole):,}" if grouped else whole
        return ("-" if self.sign < 0 and self.digits else "") + whole + ("." + behind if behind else "")

    def value(self) -> Fraction:
        return Fraction(self.sign * self.digits, 10**self.decimals)

    def with_decimals(self, decimals: int) -> "Signed":
        return Signed(self.sign, int(str(self.digits) + "0" * (decimals - self.decimals)), decimals)


def computed(asked: str, numbers: Sequence[Signed], write: Write) -> Signed:
    """What is asked of numbers that have the signs of their roles, from left to right."""
    decimals = max(number.decimals for number in numbers)
    first, *others = (number.with_decimals(decimals) for number in numbers)
    for second in others:
        first = _STEPS[asked](first, second, write)
    return first


def _sum(first: Signed, second: Signed, write: Write) -> Signed:
    if first.sign == second.sign:
        return first._replace(digits=int(write("add", first.digits, second.digits)))
    return _difference(first, second, write)


def _difference(first: Signed, second: Signed, write: Write) -> Signed:
    """The difference of the digits, with the sign of the number that has more."""
    if write("compare", first.digits, second.digits) == "<":
        first, second = second, first
    return first._replace(digits=int(write("subtract", first.digits, second.digits)))


def _distance(first: Signed, second: Signed, write: Write) -> Signed:
    return _difference(first, second, write)._replace(sign=1)


def _larger(first: Signed, second: Signed, write: Write) -> Signed:
    return second if write("compare", first.digits, second.digits) == "<" else first


def _smaller(first: Signed, second: Signed, write: Write) -> Signed:
    return first if write("compare", first.digits, second.digits) == "<" else second


_STEPS = {"sum": _sum, "distance": _distance, "larger": _larger, "smaller": _smaller}
