"""Products: for each digit of the second number, from the ones on, adds that many times the first number to the total.

Cells hold the digit of the total and, from the first walk on, that of the first number, which each walk leaves one place
higher than it found it. So the digit of the second number, at the lowest place of this walk, meets the right places.
"""

from experiments.nupa.rules.output import drop
from experiments.nupa.rules.phases import Line, View, down, phase, starts, up, value, within
from experiments.nupa.tape import BLANK


@starts("multiply_hard_integer", "multiply_easy_integer")
def start(view: View) -> Line:
    return first_product(within(view, view.b, "0", BLANK))


@phase
def first_product(view: View) -> Line:
    """Like `product`, out of the digits of the question."""
    return multiplied(view, first_product, view.a)


@phase
def product(view: View) -> Line:
    """The state: the digit of the second number, the carry, and the digit of the first number from the place below."""
    return multiplied(view, product, view.cell[1])


def multiplied(view: View, again: "object", digit: str) -> Line:
    factor, carry, before = view.state[:3]
    if digit == BLANK:
        return down(fall, cell=(carry, before))
    total = value(view.cell[0]) + int(factor) * int(digit) + int(carry)
    return up(again, factor, str(total // 10), digit, cell=(str(total % 10), before))  # type: ignore[arg-type]


@phase
def fall(view: View) -> Line:
    """Goes down to where the next walk begins."""
    return up(next_factor) if view.cell[1] == BLANK else down(fall)


@phase
def next_factor(view: View) -> Line:
    return climb(view) if view.b == BLANK else product(within(view, view.b, "0", BLANK))


@phase
def climb(view: View) -> Line:
    """Goes up to the highest place of the total."""
    return down(drop) if view.cell[1] == BLANK else up(climb)
