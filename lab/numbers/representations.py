r"""The four representations of a number: integer, float (finite decimal), fraction, scientific notation.

Number Cookbook (arXiv 2411.03766), appendix A.1.1. All numbers are non-negative and exact; no binary float is
ever involved. `str(number)` is its canonical text; `parse` reads texts of the grammar:

    Integer     [0-9]+                          canonical without leading zeros           1234567
    Float       [0-9]+\.[0-9]+                 no trailing zeros, at least one decimal   1234.5, 5.0
    Fraction    [0-9]+/[0-9]+                   reduced                                   12/7, 7/1, 0/1
    Scientific  [0-9]+\.[0-9]+e[0-9]+          1 <= significand < 10, or zero as 0.0e0   1.5e8, 3.0e5

`parse` accepts a significand only with a single digit before the point. Answers with more digits there are still found
and scored.

The classes are plain slotted dataclasses, because training data makes millions of them; treat them as immutable.
"""

import math
import re
from dataclasses import dataclass
from typing import ClassVar, Self, TypeAlias


@dataclass(slots=True, unsafe_hash=True, order=True)
class Integer:
    """A whole number; one part, aligned at its ones digit."""

    value: int

    name: ClassVar[str] = "integer"
    pattern: ClassVar[re.Pattern[str]] = re.compile(r"[0-9]+")
    alignment: ClassVar[tuple[str, ...]] = ("right",)

    def __str__(self) -> str:
        return str(self.value)

    def __add__(self, other: Self) -> "Integer":
        return Integer(self.value + other.value)

    def __sub__(self, other: Self) -> "Integer":
        return Integer(self.value - other.value)

    def __mul__(self, other: Self) -> "Integer":
        return Integer(self.value * other.value)

    @classmethod
    def parse(cls, text: str) -> "Integer":
        """Reads a number. Like every `parse`, it raises ValueError if `text` does not match the grammar above."""
        (value,) = split_parts(text, cls)
        return Integer(int(value))


class Decimal:
    """What Float and Scientific share: coefficient x 10**exponent, with no trailing zero in the coefficient."""

    __slots__ = ("coefficient", "exponent")

    def __init__(self, coefficient: int, exponent: int) -> None:
        if coefficient % 10 == 0:
            digits = str(coefficient)
            kept = digits.rstrip("0")
            coefficient, exponent = (int(kept), exponent + len(digits) - len(kept)) if kept else (0, 0)
        self.coefficient = coefficient
        self.exponent = exponent

    def scaled(self, exponent: int) -> int:
        """The value in units of 10**exponent; `exponent` must not be above this number's own."""
        return self.coefficient * 10 ** (self.exponent - exponent)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return self.coefficient == other.coefficient and self.exponent == other.exponent  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((self.coefficient, self.exponent))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self})"

    def __lt__(self, other: Self) -> bool:
        unit = min(self.exponent, other.exponent)
        return self.scaled(unit) < other.scaled(unit)

    def __add__(self, other: Self) -> Self:
        unit = min(self.exponent, other.exponent)
        return type(self)(self.scaled(unit) + other.scaled(unit), unit)

    def __sub__(self, other: Self) -> Self:
        unit = min(self.exponent, other.exponent)
        return type(self)(self.scaled(unit) - other.scaled(unit), unit)

    def __mul__(self, other: Self) -> Self:
        return type(self)(self.coefficient * other.coefficient, self.exponent + other.exponent)


class Float(Decimal):
    """A finite decimal; two parts: integer (aligned at its ones digit) and decimals (aligned at the point)."""

    __slots__ = ()
    name: ClassVar[str] = "float"
    pattern: ClassVar[re.Pattern[str]] = re.compile(r"[0-9]+\.[0-9]+")
    alignment: ClassVar[tuple[str, ...]] = ("right", "left")

    @property
    def decimals(self) -> int:
        """How many decimals the canonical text shows; at least one."""
        return max(1, -self.exponent)

    def __str__(self) -> str:
        exponent = self.exponent
        if exponent >= 0:
            return f"{self.coefficient * 10**exponent}.0"
        digits = str(self.coefficient)
        if len(digits) <= -exponent:
            digits = digits.zfill(1 - exponent)
        return f"{digits[:exponent]}.{digits[exponent:]}"

    @classmethod
    def parse(cls, text: str) -> "Float":
        whole, decimals = split_parts(text, cls)
        return Float(int(whole + decimals), -len(decimals))


class Scientific(Decimal):
    """Scientific notation; three parts: leading digit, decimals of the significand, exponent (0 or more)."""

    __slots__ = ()
    name: ClassVar[str] = "scientific"
    pattern: ClassVar[re.Pattern[str]] = re.compile(r"[0-9]+\.[0-9]+e[0-9]+")
    alignment: ClassVar[tuple[str, ...]] = ("right", "left", "right")

    @property
    def power(self) -> int:
        """The exponent that the canonical text shows."""
        return self.exponent + len(str(self.coefficient)) - 1

    @property
    def decimals(self) -> int:
        """How many decimals the significand has; a lone zero does not count."""
        return len(str(self.coefficient)) - 1

    def with_power(self, power: int) -> "Scientific":
        """This significand with another exponent."""
        return Scientific(self.coefficient, power - self.decimals)

    def __str__(self) -> str:
        digits = str(self.coefficient)
        return f"{digits[0]}.{digits[1:] or '0'}e{self.exponent + len(digits) - 1}"

    @classmethod
    def parse(cls, text: str) -> "Scientific":
        leading, decimals, power = split_parts(text, cls)
        if len(leading) != 1 or (leading == "0" and int(decimals + power) != 0):
            raise ValueError(f"{text!r} is not in scientific notation: its significand must be at least 1 and below 10")
        return Scientific(int(leading + decimals), int(power) - len(decimals))


@dataclass(slots=True, unsafe_hash=True)
class Fraction:
    """A reduced fraction; two parts, numerator and denominator, both aligned at their ones digits."""

    numerator: int
    denominator: int

    name: ClassVar[str] = "fraction"
    pattern: ClassVar[re.Pattern[str]] = re.compile(r"[0-9]+/[0-9]+")
    alignment: ClassVar[tuple[str, ...]] = ("right", "right")

    @classmethod
    def reduced(cls, numerator: int, denominator: int) -> "Fraction":
        """The reduced fraction. Raises ZeroDivisionError if the denominator is zero."""
        divisor = math.gcd(numerator, denominator)
        if denominator == 0:
            raise ZeroDivisionError(f"fraction {numerator}/0")
        return cls(numerator // divisor, denominator // divisor)

    def __str__(self) -> str:
        return f"{self.numerator}/{self.denominator}"

    def __lt__(self, other: Self) -> bool:
        return self.numerator * other.denominator < other.numerator * self.denominator

    def __add__(self, other: Self) -> "Fraction":
        top = self.numerator * other.denominator + other.numerator * self.denominator
        return Fraction.reduced(top, self.denominator * other.denominator)

    def __sub__(self, other: Self) -> "Fraction":
        top = self.numerator * other.denominator - other.numerator * self.denominator
        return Fraction.reduced(top, self.denominator * other.denominator)

    def __mul__(self, other: Self) -> "Fraction":
        return Fraction.reduced(self.numerator * other.numerator, self.denominator * other.denominator)

    def __truediv__(self, other: Self) -> "Fraction":
        return Fraction.reduced(self.numerator * other.denominator, self.denominator * other.numerator)

    @classmethod
    def parse(cls, text: str) -> "Fraction":
        numerator, denominator = map(int, split_parts(text, cls))
        if denominator == 0:
            raise ValueError(f"{text!r} is not a fraction: its denominator is zero")
        return Fraction.reduced(numerator, denominator)


Number: TypeAlias = Integer | Float | Fraction | Scientific
Representation: TypeAlias = type[Integer] | type[Float] | type[Fraction] | type[Scientific]

_SEPARATORS = re.compile(r"[./e]")


def split_parts(text: str, representation: Representation) -> list[str]:
    """The digit strings of the parts, as written: '425.92' -> ['425', '92'].

    Raises ValueError if `text` does not match the representation's grammar (ASCII digits, no sign).
    """
    if not representation.pattern.fullmatch(text):
        raise ValueError(f"{text!r} is not of the form {representation.pattern.pattern} ({representation.name})")
    return _SEPARATORS.split(text)


def length(number: Number) -> int:
    """How many digits the longest part has (appendix A.1.7); the lone zero of 5.0 counts as one.

    The exponent does not count, as in the published test set: 3.2e57 has length 1. If it counted, hardly any number
    would have length 1.
    """
    parts = _SEPARATORS.split(str(number))
    return max(map(len, parts[:-1] if isinstance(number, Scientific) else parts))
