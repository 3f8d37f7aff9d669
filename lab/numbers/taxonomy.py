"""How a sum is wrong: the error classes of carry-free addition, and other properties of the wrong digits.

The classes are those of the carry-free benchmark ("测试大模型的基础计算能力"). The decision procedure of `classify`
agrees with its authors' own labels on 2,593 of 2,593 wrong answers.

Numbers are text throughout, because a model may answer with 100,000 digits, which int() takes long to read.
"""

import re
from collections.abc import Callable
from operator import eq
from typing import Literal, get_args

ErrorClass = Literal["correct", "carry_1d", "sub_1d", "order_2d", "value_nd"]
CLASSES: tuple[ErrorClass, ...] = get_args(ErrorClass)
"""The classes, in the order in which figures stack them."""

OUTCOMES = (*CLASSES, "parse_error")
"""The classes, and parse_error if no number could be read."""

INTEGER = re.compile(r"[+-]?[0-9]+")


def classify(given: str, truth: str) -> ErrorClass:
    """The class of an answer, by value: leading zeros and a plus sign make no difference.

    carry_1d  one run of digits is too high by 1 to 8, as after a carry that was made up; the run may be long (900
              instead of 899)
    sub_1d    one run of digits is too low by 1 to 8, as after a carry that was missed
    order_2d  two neighbouring digits are swapped
    value_nd  any other wrong number

    Raises ValueError unless both are ASCII integers and `truth` is not negative.
    """
    negative, digits, true = _parsed(given, truth)
    if digits == true and not negative:
        return "correct"
    run = None if negative else _differing_run(digits, true)
    if run is None:
        return "value_nd"
    length, difference = len(run[0]), _small_difference(*run)
    if (difference is not None or length == 2) and set(run[0]) == set(run[1]):
        return "order_2d" if length == 2 else "value_nd"
    if difference is None:
        return "value_nd"
    return "carry_1d" if difference > 0 else "sub_1d"


def unit_step(given: str, truth: str) -> bool:
    """Whether exactly one run of digits differs, and by 1: a carry was made up or missed.

    Raises ValueError as `classify` does.
    """
    negative, digits, true = _parsed(given, truth)
    run = None if negative or digits == true else _differing_run(digits, true)
    return run is not None and _small_difference(*run) in (1, -1)


def same_value(given: str, truth: str) -> bool:
    """Whether both are the same number. Raises ValueError as `classify` does."""
    negative, digits, true = _parsed(given, truth)
    return digits == true and not negative


def off_by_one(given: str, truth: str) -> bool:
    """Whether the numbers differ by 1, however many digits that changes. Raises ValueError as `classify` does."""
    negative, digits, true = _parsed(given, truth)
    width = max(len(digits), len(true))
    return _small_difference(digits.zfill(width), true.zfill(width), -1 if negative else 1) in (1, -1)


def rounded(given: str, truth: str) -> bool:
    """Whether the answer is the truth, rounded or cut to fewer significant figures and filled up with zeros.

    A half may be rounded either way. Raises ValueError as `classify` does.
    """
    negative, digits, true = _parsed(given, truth)
    # At least one figure must be left. All trailing zeros of the answer count as rounded places: if rounding at fewer
    # places gives the answer, rounding at all of them gives it too.
    places = min(len(digits) - len(digits.rstrip("0")), len(true) - 1)
    if negative or places < 1 or digits == true:
        return False
    kept, head, tail = digits[:-places], true[:-places], true[-places:]
    width = max(len(kept), len(head))
    return kept == head or (tail >= "5" and _small_difference(kept.zfill(width), head.zfill(width)) == 1)


def wrong_length(given: str, truth: str) -> bool:
    """Whether the number of digits differs, leading zeros aside. Raises ValueError as `classify` does."""
    _, digits, true = _parsed(given, truth)
    return len(digits) != len(true)


TAGS: dict[str, Callable[[str, str], bool]] = {
    "off_by_one": off_by_one,
    "rounded": rounded,
    "wrong_length": wrong_length,
    "unit_step": unit_step,
}
"""Properties of a wrong sum besides its class; any number of them may hold."""


def _parsed(given: str, truth: str) -> tuple[bool, str, str]:
    """Whether the answer is negative, its digits, and the truth's digits, without leading zeros."""
    for text in (given, truth):
        if not INTEGER.fullmatch(text):
            raise ValueError(f"{text[:50]!r} is not an ASCII integer")
    digits, true = (text.lstrip("+-").lstrip("0") or "0" for text in (given, truth))
    if truth[0] == "-" and true != "0":
        raise ValueError(f"the truth, {truth[:50]}, is negative")
    return given[0] == "-" and digits != "0", digits, true


def _differing_run(given: str, true: str) -> tuple[str, str] | None:
    """The differing digits of both numbers, aligned at the right, if they are one unbroken run, or else None.

    The numbers must differ.
    """
    width, shorter = max(len(given), len(true)), min(len(given), len(true))
    given, true = given.zfill(width), true.zfill(width)
    first = next(index for index in range(width) if given[index] != true[index])
    end = next(index for index in range(width, 0, -1) if given[index - 1] != true[index - 1])
    # The longer one is compared with the padding of the other in one step, because it may have a million digits.
    padding = min(width - shorter, end)
    begin = max(first, padding)
    unbroken = "0" not in max(given, true)[:padding] and not any(map(eq, given[begin:end], true[begin:end]))
    return (given[first:end], true[first:end]) if unbroken else None


def _small_difference(given: str, true: str, sign: int = 1) -> int | None:
    """sign * given - true for texts of the same length, or None if it is not within -8..8."""
    difference = 0
    for g, t in zip(given, true, strict=True):
        difference = 10 * difference + sign * int(g) - int(t)
        # It cannot come back: each later digit multiplies it by 10, and brings it back by at most 9.
        if abs(difference) > 8:
            return None
    return difference
