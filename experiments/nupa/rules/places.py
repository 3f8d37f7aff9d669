"""Rules that walk once from the lowest place up: sums, differences, comparison, and what is done with pairs of digits.

The state of floats also says whether only zeros have come so far: these are not written, because they would end the
decimals of the answer.
"""

from experiments.nupa.rules.output import copy, drop, has_point
from experiments.nupa.rules.phases import PHASES, Line, View, down, phase, starts, stay, up, value
from experiments.nupa.tape import BLANK

TRAILING = "zeros"


@starts(*(f"{name}_{kind}" for kind in ("integer", "float") for name in (
    "add", "sub", "digit_max", "digit_min", "digit_add", "max", "max_hard", "min", "min_hard"
)))  # fmt: skip
def start(view: View) -> Line:
    name = view.operator.strip("<>").removesuffix("_integer").removesuffix("_float").removesuffix("_hard")
    first = {"max": "larger", "min": "smaller"}.get(name, name)
    if has_point(view):
        return down(lowest, first)
    return stay(PHASES[first], *FIRST[first])


@phase("a b")
def lowest(view: View) -> Line:
    """Goes down to the place below both numbers, and begins there."""
    first = view.state[0]
    if view.a == view.b == BLANK:
        state = FIRST[first]
        return up(PHASES[first], *(state if first in ("larger", "smaller") else (state[0], TRAILING)))
    return down(lowest, first)


def digit_written(view: View, to: str, digit: int, carry: str = "0") -> Line:
    """Writes a digit of the answer, unless it would be a trailing zero, and goes up."""
    trailing = view.state[1] == TRAILING and digit == 0 and not view.ones
    return up(PHASES[to], carry, *([TRAILING] if trailing else []), cell=(BLANK if trailing else str(digit),))


@phase("a b ones")
def add(view: View) -> Line:
    carry = view.state[0]
    if view.a == view.b == BLANK:
        return up(add, "0", cell=("1",)) if carry == "1" else down(drop)
    total = value(view.a) + value(view.b) + int(carry)
    return digit_written(view, "add", total % 10, str(total // 10))


@phase("a b ones")
def sub(view: View) -> Line:
    if view.a == view.b == BLANK:
        return down(drop)
    total = value(view.a) - value(view.b) - int(view.state[0])
    return digit_written(view, "sub", total % 10, str(int(total < 0)))


def _of_pairs(view: View, to: str, digit: int) -> Line:
    return down(drop) if view.a == view.b == BLANK else digit_written(view, to, digit)


@phase("a b ones")
def digit_max(view: View) -> Line:
    return _of_pairs(view, "digit_max", max(value(view.a), value(view.b)))


@phase("a b ones")
def digit_min(view: View) -> Line:
    return _of_pairs(view, "digit_min", min(value(view.a), value(view.b)))


@phase("a b ones")
def digit_add(view: View) -> Line:
    return _of_pairs(view, "digit_add", (value(view.a) + value(view.b)) % 10)


@phase("a b")
def larger(view: View) -> Line:
    """The state names the larger number, as far as the places below this one say."""
    if view.a == view.b == BLANK:
        return down(copy, view.state[0])
    a, b = value(view.a), value(view.b)
    return up(larger, view.state[0] if a == b else "a" if a > b else "b")


@phase("a b")
def smaller(view: View) -> Line:
    if view.a == view.b == BLANK:
        return down(copy, view.state[0])
    a, b = value(view.a), value(view.b)
    return up(smaller, view.state[0] if a == b else "a" if a < b else "b")


FIRST = {
    **dict.fromkeys(("add", "sub", "digit_max", "digit_min", "digit_add"), ("0",)),
    **dict.fromkeys(("larger", "smaller"), ("a",)),
}
"""The state in which each phase begins: no carry; the first number, in case they are equal."""
