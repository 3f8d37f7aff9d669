"""Signed decimal numbers, and how three operations on digits compute what is asked of them.

The operations are the second reading's: `add`, `subtract` and `compare` on digits without sign and point. What is told
here is what is done with them: signs, points, and that three terms are two sums.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple, TypeAlias

Write: TypeAlias = Callable[[str, str, str], str]
"""What the second reading writes, given an operation and the digits of two numbers: digits, highest first, or a sign
(< = >)."""


class Signed(NamedTuple):
    """A number: its sign, 1 or -1; its digits, without zeros in front; and how many of them are behind the point."""

    sign: int
    digits: str
    decimals: int

    @classmethod
    def read(cls, text: str, sign: int = 1) -> "Signed":
        """The number that is written as `text`, perhaps with a point and with commas between thousands."""
        whole, _, behind = text.replace(",", "").partition(".")
        return cls(sign, without_zeros(whole + behind), len(behind))

    def written(self, grouped: bool) -> str:
        digits = self.digits.zfill(self.decimals + 1)
        whole, behind = digits[: len(digits) - self.decimals], digits[len(digits) - self.decimals :]
        if grouped:
            first = len(whole) % 3 or 3
            whole = ",".join([whole[:first], *(whole[at : at + 3] for at in range(first, len(whole), 3))])
        return ("-" if self.sign < 0 and self.digits != "0" else "") + whole + ("." + behind if behind else "")

    def value(self) -> Fraction:
        return Fraction(self.sign * int(self.digits), 10**self.decimals)

    def with_decimals(self, decimals: int) -> "Signed":
        return self.with_digits(self.digits + "0" * (decimals - self.decimals))._replace(decimals=decimals)

    def with_digits(self, digits: str) -> "Signed":
        return self._replace(digits=without_zeros(digits))


def without_zeros(digits: str) -> str:
    """Digits without zeros in front, but at least one digit."""
    return digits.lstrip("0") or "0"


def computed(asked: str, numbers: Sequence[Signed], write: Write) -> Signed:
    """What is asked of numbers that have the signs of their roles, from left to right."""
    decimals = max(number.decimals for number in numbers)
    first, *others = (number.with_decimals(decimals) for number in numbers)
    for second in others:
        first = _STEPS[asked](first, second, write)
    return first


def _sum(first: Signed, second: Signed, write: Write) -> Signed:
    if first.sign == second.sign:
        return first.with_digits(write("add", first.digits, second.digits))
    return _difference(first, second, write)


def _difference(first: Signed, second: Signed, write: Write) -> Signed:
    """The difference of the digits, with the sign of the number that has more."""
    if write("compare", first.digits, second.digits) == "<":
        first, second = second, first
    return first.with_digits(write("subtract", first.digits, second.digits))


def _distance(first: Signed, second: Signed, write: Write) -> Signed:
    return _sum(first, second._replace(sign=-second.sign), write)._replace(sign=1)


def _less(first: Signed, second: Signed, write: Write) -> bool:
    if first.sign != second.sign:
        return first.sign < second.sign
    return write("compare", first.digits, second.digits) == ("<" if first.sign > 0 else ">")


def _larger(first: Signed, second: Signed, write: Write) -> Signed:
    return second if _less(first, second, write) else first


def _smaller(first: Signed, second: Signed, write: Write) -> Signed:
    return first if _less(first, second, write) else second


_STEPS = {"sum": _sum, "distance": _distance, "larger": _larger, "smaller": _smaller}
