"""The 53 tasks of the lab, one row each: the 41 (task, representation) pairs of Table 1 and their variants.

A row says how a raw pair of numbers becomes the question (`prepare`), how the answer is computed (`solve`), the
answer's representation, and the tested lengths. The rules are those of Number Cookbook A.1.6 and A.1.7. If the paper is
silent or its released code disagrees, the docstring of the rule says which one it follows.

`prepare(a, b, word)` gets the longer number first, and 64 random bits for its choices. It returns the operands, or None
if the pair does not make a question; the sampler then draws another pair.
"""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias, cast

from lab.errors import TaskError
from lab.numbers import operations as op
from lab.numbers.philox import philox
from lab.numbers.representations import Float, Fraction, Integer, Number, Representation, Scientific, length
from lab.numbers.several import Integers

Operands = tuple[Number | Integers, Number | None]
Prepare: TypeAlias = Callable[..., Operands | None]


# How a raw pair becomes a question -------------------------------------------------------------------------------


def either_order(a: Number, b: Number, word: int) -> Operands:
    return (b, a) if word & 1 else (a, b)


def distinct(a: Number, b: Number, word: int) -> Operands | None:
    """For comparisons: equal numbers are refused, because they would make a trivial question."""
    return None if a == b else either_order(a, b, word)


def larger_first(a: Number, b: Number, word: int) -> Operands:
    return (b, a) if a < b else (a, b)  # type: ignore[operator]


def nonzero_divisor(a: Number, b: Number, word: int) -> Operands:
    """A divisor of 0 becomes 1."""
    a, b = either_order(a, b, word)  # type: ignore[assignment]
    return a, _one_for_zero(b)


def larger_by_divisor(a: Number, b: Number, word: int) -> Operands:
    a, b = larger_first(a, b, word)  # type: ignore[assignment]
    return a, _one_for_zero(b)


def short_modulus(a: Integer, b: Integer, word: int) -> Operands:
    """mod: the modulus keeps at most 0.7 times as many digits as the dividend, plus one; leading digits are dropped."""
    a, b = larger_first(a, b, word)  # type: ignore[assignment]
    most = 7 * len(str(a.value)) // 10 + 1
    return a, _one_for_zero(Integer(b.value % 10**most))


def three_digit_modulus(a: Integer, b: Integer, word: int) -> Operands:
    a, b = larger_first(a, b, word)  # type: ignore[assignment]
    return a, _one_for_zero(shortened(b))  # type: ignore[arg-type]


LONGEST_SHORT_FACTOR = 3


def short_second(a: Number, b: Number, word: int) -> Operands:
    """multiply_easy: the shorter number keeps at most three digits per part (the released code; the paper says < 3)."""
    return a, shortened(b)


@functools.cache  # problems are cached by their rule, so the same number of digits must give the same function
def shorter_second(digits: int) -> Prepare:
    """multiply_easy of integers: the shorter number keeps at most `digits` digits."""

    def prepare(a: Integer, b: Integer, word: int) -> Operands:
        return a, Integer(b.value % 10**digits)

    return prepare


def short_either(a: Number, b: Number, word: int) -> Operands:
    """add_easy: like multiply_easy, but either number may come first."""
    return either_order(a, shortened(b), word)


@functools.cache
def several(fewest: int, most: int) -> Prepare:
    """sum of integers: from `fewest` to `most` terms. One is the longer number of the raw pair; the others have between
    one digit and as many as it has."""

    def prepare(a: Integer, b: Integer, word: int) -> Operands:
        digits, generator = length(a), philox("terms", a, b, word)
        terms = []
        for _ in range(word % (most - fewest + 1) + fewest - 1):
            own = 1 + int(generator.random_raw()) % digits
            drawn = sum(int(part) << 64 * i for i, part in enumerate(generator.random_raw(digits // 16 + 2)))
            terms.append(drawn % (9 * 10 ** (own - 1)) + 10 ** (own - 1))
        terms.insert(int(generator.random_raw()) % (len(terms) + 1), a.value)
        return Integers(tuple(terms)), None

    return prepare


def proper(a: Fraction, b: Fraction, word: int) -> Operands | None:
    """Comparison of fractions: improper ones are inverted, so that comparing each with 1 does not help."""
    return distinct(_inverted_if_improper(a), _inverted_if_improper(b), word)


def close_powers(a: Scientific, b: Scientific, word: int) -> Operands:
    """add: exponents at most 5 apart and at most 98."""
    a = a.with_power(min(a.power, 98))
    return either_order(a, b.with_power(min(max(a.power + (word >> 1) % 11 - 5, 0), 98)), word)


def close_powers_descending(a: Scientific, b: Scientific, word: int) -> Operands | None:
    """sub: the second exponent is 1 to 5 below the first; differences below 1 (negative exponent) are refused."""
    a, b = either_order(a, b, word)  # type: ignore[assignment]
    a = a.with_power(max(a.power, 1))
    b = b.with_power(max(a.power - 1 - (word >> 1) % 5, 0))
    return None if (a - b).power < 0 else (a, b)


def common_start(a: Integer, b: Integer, word: int) -> Operands | None:
    """max_hard: numbers of the same length whose first k digits agree, with k uniform from 0 to all but one."""
    tail = 10 ** (len(str(a.value)) - (word >> 1) % len(str(a.value)))
    return distinct(a, Integer(a.value - a.value % tail + b.value % tail), word)


def common_start_float(a: Float, b: Float, word: int) -> Operands | None:
    """max_hard: 7 of 10 pairs share the integer part and the first k decimals, with k below the number of decimals."""
    if (word >> 1) % 10 < 3:
        return distinct(a, b, word)
    tail = 10 ** (a.decimals - (word >> 8) % a.decimals)
    return distinct(a, Float(a.coefficient - a.coefficient % tail + b.coefficient % tail, a.exponent), word)


def common_start_scientific(a: Scientific, b: Scientific, word: int) -> Operands | None:
    """max_hard: 8 of 10 pairs share the exponent (the released code; the paper says 7), and also the leading digit and
    the first k decimals, with k uniform from -1 (nothing more shared) to one below the shorter significand's decimals.
    """
    if (word >> 1) % 10 < 2:
        return distinct(a, b, word)
    decimals_a, decimals_b = a.decimals, b.decimals
    shared = (word >> 8) % (min(decimals_a, decimals_b) + 1) - 1
    tail_b = 10 ** (decimals_b - shared)
    start = a.coefficient // 10 ** (decimals_a - shared)
    coefficient = start * tail_b + b.coefficient % tail_b if shared >= 0 else b.coefficient
    return distinct(a, Scientific(coefficient, a.power - decimals_b), word)


def alone(a: Number, b: Number, word: int) -> Operands:
    return a, None


def at_position(a: Number, b: Number, word: int) -> Operands:
    return a, Integer(word % op.length(a).value)


def with_digit(a: Number, b: Number, word: int) -> Operands:
    return a, Integer(word % 10)


def with_figures(a: Number, b: Number, word: int) -> Operands:
    """sig: from 2 figures up to all digits; the outer zeros of a float do not count."""
    digits = str(a) if isinstance(a, Integer) else str(a).replace(".", "").strip("0")
    return a, Integer(2 + word % max(1, len(digits) - 1))


def finite_decimal(a: Fraction, b: Fraction, word: int) -> Operands | None:
    """to_float: the denominator is 2**i * 5**j, with i and j at most the length; reducing must keep the length."""
    digits = length(a)
    denominator = 2 ** (word % (digits + 1)) * 5 ** ((word >> 16) % (digits + 1))
    fraction = Fraction.reduced(max(a.numerator, a.denominator), denominator)
    return (fraction, None) if length(fraction) == digits else None


def small_power(a: Scientific, b: Scientific, word: int) -> Operands:
    """to_float: the exponent is at most the number of decimals, so that no zeros are appended."""
    return a.with_power(word % (min(a.power, a.decimals) + 1)), None


def trailing_zeros(a: Integer, b: Integer, word: int) -> Operands:
    """to_scient: up to half of the digits, from the right, become zeros."""
    zeros = 10 ** (word % (len(str(a.value)) // 2 + 1))
    return Integer(a.value - a.value % zeros), None


def shortened(number: Number) -> Number:
    """The number with at most three digits per part; a denominator that becomes 0 is replaced by 1."""
    if isinstance(number, Integer):
        return Integer(number.value % 10**LONGEST_SHORT_FACTOR)
    if isinstance(number, Fraction):
        return Fraction.reduced(number.numerator % 1000, number.denominator % 1000 or 1)
    if isinstance(number, Float):
        decimals = min(3, number.decimals)
        return Float(
            number.scaled(-number.decimals) // 10 ** (number.decimals - decimals) % 10 ** (3 + decimals), -decimals
        )
    surplus = max(0, number.decimals - 3)
    return Scientific(number.coefficient // 10**surplus, number.exponent + surplus)


def _one_for_zero(number: Number) -> Number:
    if isinstance(number, Integer):
        return number if number.value else Integer(1)
    return number if not isinstance(number, Fraction) or number.numerator else Fraction(1, 1)


def _inverted_if_improper(number: Fraction) -> Fraction:
    improper = number.numerator > number.denominator
    return Fraction(number.denominator, number.numerator) if improper else number


# The table -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Difficulty:
    """The longest tested length and the ranges S, M, L and XL of lengths (appendix A.1.6, section 2.3)."""

    longest: int
    ranges: dict[str, range]


HARD = Difficulty(20, {"S": range(1, 5), "M": range(5, 9), "L": range(9, 15), "XL": range(15, 21)})
EASY = Difficulty(100, {"S": range(1, 11), "M": range(11, 21), "L": range(21, 61), "XL": range(61, 101)})


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    name: str
    representation: Representation
    prepare: Prepare
    solve: Callable[..., Number | str]
    answer: Representation
    difficulty: Difficulty
    same_length: bool = False
    """Whether both raw numbers have the full length; if not, the second has from half to all of it."""

    @property
    def key(self) -> str:
        return f"{self.name}_{self.representation.name}"

    @property
    def second(self) -> Representation | None:
        """The representation of the second operand (Table 4); None if there is none. A parameter is an Integer."""
        if self.name in ("length", "to_float", "to_scient", "sum"):
            return None
        return Integer if self.has_parameter else self.representation

    @property
    def has_parameter(self) -> bool:
        """Whether the second operand is a parameter (a position, a digit or a number of figures), not a number."""
        return self.name in ("get_digit", "count", "sig")

    @property
    def left_open(self) -> tuple[str, ...]:
        """How the lab decides what the prompt leaves open about the answer; empty if it leaves nothing open."""
        missing, dropped = "a missing digit counts as 0", "leading zeros, and those after the last decimal, are dropped"
        decided = {
            "digit_max": (missing,),
            "digit_min": (missing, dropped),
            "digit_add": (missing, dropped),
            "get_digit": ("the decimal point has no position",) if self.representation is Float else (),
            "length": ("the decimal point is no digit",) if self.representation is Float else (),
            "sig": ("a half is rounded up",),
        }
        written = {
            Float: ("a whole number has one decimal: 3 is 3.0",),
            Fraction: ("a whole number is a fraction, too: 6/3 is 2/1",),
            Scientific: ("there is always a decimal: 3e5 is 3.0e5",),
        }
        return decided.get(self.name, ()) + written.get(self.answer, ())

    @property
    def tested_lengths(self) -> range:
        """The lengths that are tested. Shorter ones belong to training, "to make sure that unit rules can be included"
        (A.1.8).
        """
        if self.representation is Fraction:
            shortest = 1
        else:
            shortest = 5 if self.difficulty is EASY and self.representation is Integer else 3
        return range(shortest, self.difficulty.longest + 1)

    def range_of(self, digits: int) -> str:
        """The range of a length: S, M, L or XL. Raises TaskError if it is outside all four."""
        for name, lengths in self.difficulty.ranges.items():
            if digits in lengths:
                return name
        raise TaskError(f"{self.key} has no length {digits}; lengths are 1 to {self.difficulty.longest}")


_ROWS = (
    # elementary arithmetic
    Task("add", Integer, either_order, op.add, Integer, HARD),
    Task("add", Float, either_order, op.add, Float, HARD),
    Task("add", Fraction, either_order, op.add, Fraction, HARD),
    Task("add_easy", Fraction, short_either, op.add, Fraction, HARD),
    Task("add", Scientific, close_powers, op.add, Scientific, HARD),
    Task("sub", Integer, larger_first, op.sub, Integer, HARD),
    Task("sub", Float, larger_first, op.sub, Float, HARD),
    Task("sub", Fraction, larger_first, op.sub, Fraction, HARD),
    Task("sub", Scientific, close_powers_descending, op.sub, Scientific, HARD),
    Task("multiply_hard", Integer, either_order, op.mul, Integer, HARD),
    Task("multiply_hard", Float, either_order, op.mul, Float, HARD),
    Task("multiply_hard", Fraction, either_order, op.mul, Fraction, HARD),
    Task("multiply_hard", Scientific, either_order, op.mul, Scientific, HARD),
    Task("multiply_easy", Integer, short_second, op.mul, Integer, HARD),
    Task("multiply_easy", Float, short_second, op.mul, Float, HARD),
    Task("multiply_easy", Fraction, short_second, op.mul, Fraction, HARD),
    Task("multiply_easy", Scientific, short_second, op.mul, Scientific, HARD),
    Task("truediv", Integer, nonzero_divisor, op.integer_ratio, Fraction, HARD),
    Task("truediv", Fraction, nonzero_divisor, op.truediv, Fraction, HARD),
    Task("floordiv", Integer, larger_by_divisor, op.floor_divide, Integer, HARD),
    Task("mod", Integer, short_modulus, op.remainder, Integer, HARD),
    Task("mod_easy", Integer, three_digit_modulus, op.remainder, Integer, HARD),
    # comparison
    Task("max", Integer, distinct, op.larger, Integer, EASY),
    Task("max", Float, distinct, op.larger, Float, EASY),
    Task("max", Fraction, proper, op.larger, Fraction, HARD),
    Task("max", Scientific, distinct, op.larger, Scientific, EASY),
    Task("max_hard", Integer, common_start, op.larger, Integer, EASY, same_length=True),
    Task("max_hard", Float, common_start_float, op.larger, Float, EASY, same_length=True),
    Task("max_hard", Scientific, common_start_scientific, op.larger, Scientific, EASY),
    Task("min", Integer, distinct, op.smaller, Integer, EASY),
    Task("min", Float, distinct, op.smaller, Float, EASY),
    Task("min", Fraction, proper, op.smaller, Fraction, HARD),
    Task("min", Scientific, distinct, op.smaller, Scientific, EASY),
    Task("min_hard", Integer, common_start, op.smaller, Integer, EASY, same_length=True),
    Task("min_hard", Float, common_start_float, op.smaller, Float, EASY, same_length=True),
    Task("min_hard", Scientific, common_start_scientific, op.smaller, Scientific, EASY),
    # digit understanding
    Task("digit_max", Integer, either_order, op.digit_max, Integer, EASY),
    Task("digit_max", Float, either_order, op.digit_max, Float, EASY),
    Task("digit_min", Integer, either_order, op.digit_min, Integer, EASY),
    Task("digit_min", Float, either_order, op.digit_min, Float, EASY),
    Task("digit_add", Integer, either_order, op.digit_add, Integer, EASY),
    Task("digit_add", Float, either_order, op.digit_add, Float, EASY),
    Task("get_digit", Integer, at_position, op.get_digit, Integer, EASY),
    Task("get_digit", Float, at_position, op.get_digit, Integer, EASY),
    Task("length", Integer, alone, lambda a, _: op.length(a), Integer, EASY),
    Task("length", Float, alone, lambda a, _: op.length(a), Integer, EASY),
    Task("count", Integer, with_digit, op.count, Integer, EASY),
    # conversion
    Task("to_float", Fraction, finite_decimal, lambda a, _: op.to_float(a), Float, HARD),
    Task("to_float", Scientific, small_power, lambda a, _: op.to_float(a), Float, EASY),
    Task("to_scient", Integer, trailing_zeros, lambda a, _: op.to_scientific(a), Scientific, EASY),
    Task("to_scient", Float, alone, lambda a, _: op.to_scientific(a), Scientific, EASY),
    Task("sig", Integer, with_figures, op.significant, Scientific, EASY),
    Task("sig", Float, with_figures, op.significant, Scientific, EASY),
)  # fmt: skip

TASKS: dict[str, Task] = {task.key: task for task in _ROWS}

SUM = Task("sum", cast(Representation, Integers), several(2, 10), lambda a, _: a.sum(), Integer, HARD)
"""The sum of several integers. The paper has no such task: only models from scratch are trained on it."""
KNOWN: dict[str, Task] = {**TASKS, SUM.key: SUM}
"""The 53 tasks and the sum of several integers, by name."""


def task(key: str, among: Mapping[str, Task] = TASKS) -> Task:
    """The task of that name. Raises TaskError, with the nearest names, if there is none."""
    if key in among:
        return among[key]
    from difflib import get_close_matches

    if key in KNOWN:
        raise TaskError(f"{key}: only models from scratch have this task (lab pretrain)")
    near = get_close_matches(key, among, n=3, cutoff=0.5) or sorted(among)
    raise TaskError(f"no task {key!r}; did you mean {', '.join(near)}?")
