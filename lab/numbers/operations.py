"""The operations of the tasks, computed exactly (Number Cookbook, appendix A.1.2).

Every function takes and returns canonical numbers of one representation. A second operand that is a position, a digit
or a number of figures is also an Integer (the paper's lower-case `int`).
"""

from operator import add, mul, sub, truediv

import numpy as np

from lab.numbers.representations import Float, Fraction, Integer, Number, Scientific

__all__ = ["add", "count", "digit_add", "digit_max", "digit_min", "floor_divide", "get_digit", "integer_ratio"]
__all__ += ["larger", "length", "mul", "remainder", "significant", "smaller", "sub", "to_float", "to_scientific"]
__all__ += ["truediv"]


def integer_ratio(a: Integer, b: Integer) -> Fraction:
    return Fraction.reduced(a.value, b.value)


def floor_divide(a: Integer, b: Integer) -> Integer:
    return Integer(a.value // b.value)


def remainder(a: Integer, b: Integer) -> Integer:
    return Integer(a.value % b.value)


def larger(a: Number, b: Number) -> Number:
    return b if a < b else a  # type: ignore[operator]


def smaller(a: Number, b: Number) -> Number:
    return a if a < b else b  # type: ignore[operator]


def digit_max(a: Number, b: Number) -> Number:
    """The larger digit at each aligned position; a missing digit counts as 0."""
    return _digit_by_digit(a, b, np.maximum)


def digit_min(a: Number, b: Number) -> Number:
    """The smaller digit at each aligned position; a missing digit counts as 0."""
    return _digit_by_digit(a, b, np.minimum)


def digit_add(a: Number, b: Number) -> Number:
    """Addition without carries: the sum modulo 10 at each aligned position. 44.418 and 65.669 give 9.077."""
    return _digit_by_digit(a, b, lambda x, y: (x + y) % 10)


def get_digit(a: Number, position: Integer) -> Integer:
    """The digit at a position, counted from the left, starting at 0; the decimal point is skipped.

    Raises IndexError if the number has no such position.
    """
    return Integer(int(_digits(a)[position.value]))


def length(a: Number) -> Integer:
    """How many digits the number has in all; the decimal point does not count."""
    return Integer(len(_digits(a)))


def count(a: Number, digit: Integer) -> Integer:
    return Integer(_digits(a).count(str(digit.value)))


def to_float(a: Fraction | Scientific) -> Float:
    """Converts a number to a float. Raises ValueError for a fraction that is not a finite decimal."""
    if isinstance(a, Scientific):
        return Float(a.coefficient, a.exponent)
    # A denominator 2**i * 5**j divides 10**k if k is at least i and j, and both are below the denominator's bit length.
    decimals = a.denominator.bit_length()
    quotient, rest = divmod(a.numerator * 10**decimals, a.denominator)
    if rest:
        raise ValueError(f"{a} is not a finite decimal")
    return Float(quotient, -decimals)


def to_scientific(a: Integer | Float) -> Scientific:
    """Converts a number to scientific notation.

    Raises ValueError for a number between 0 and 1, whose exponent would be negative.
    """
    number = Scientific(a.value, 0) if isinstance(a, Integer) else Scientific(a.coefficient, a.exponent)
    if number.coefficient and number.power < 0:
        raise ValueError(f"{a} is below 1: the benchmark's scientific notation has no negative exponent")
    return number


def significant(a: Integer | Float, figures: Integer) -> str:
    """The number rounded half up to `figures` significant figures: 50400 to 2 figures is 5.0e4.

    It is returned as text, because trailing zeros count.

    The released code rounds 9 % of its items wrongly; this is exact school rounding.
    """
    number = to_scientific(a)
    digits, power, kept = str(number.coefficient), number.power, figures.value
    if len(digits) > kept:
        cut = 10 ** (len(digits) - kept)
        digits = str((number.coefficient + cut // 2) // cut)
        power += len(digits) - kept
    digits = digits[:kept].ljust(kept, "0")
    return f"{digits[0]}.{digits[1:] or '0'}e{power}"


def _digits(a: Number) -> str:
    return str(a).replace(".", "")


def _digit_by_digit(a: Number, b: Number, rule) -> Number:
    if isinstance(a, Float) and isinstance(b, Float):
        unit = min(a.exponent, b.exponent)
        return Float(_columns(a.scaled(unit), b.scaled(unit), rule), unit)
    return Integer(_columns(a.value, b.value, rule))  # type: ignore[union-attr]


def _columns(a: int, b: int, rule) -> int:
    x, y = str(a), str(b)
    width = max(len(x), len(y))
    columns_2W = np.frombuffer((x.zfill(width) + y.zfill(width)).encode(), np.uint8).reshape(2, width) - 48
    return int((rule(columns_2W[0], columns_2W[1]) + 48).tobytes())
