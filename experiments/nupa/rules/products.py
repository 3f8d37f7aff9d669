"""Products: for each digit of the second number, from the ones on, adds that many times the first number to the total.

Cells hold the digit of the total and, from the first walk on, that of the first number, which each walk leaves one
place higher than it found it. So the digit of the second number, at the lowest place of this walk, meets the right
places.
"""

from experiments.nupa.rules.output import drop
from experiments.nupa.rules.phases import Line, View, down, phase, starts, stay, up, value, within
from experiments.nupa.tape import BLANK, Step


@starts("multiply_hard_integer", "multiply_easy_integer")
def start(view: View) -> Line:
    return stay(first_factor)


@phase("b")
def first_factor(view: View) -> Line:
    return stay(first_product, view.b, BLANK, "0")


@phase("a")
def first_product(view: View) -> Line:
    """Like `product`, out of the digits of the question."""
    return multiplied(view, first_product, view.a)


@phase("0 1")
def product(view: View) -> Line:
    """The state: the digit of the second number, that of the first from the place below, the carry, and the
    product of two digits."""
    return multiplied(view, product, view.cell[1])


def multiplied(view: View, again: Step, digit: str) -> Line:
    """Writes tens and ones of the product of two digits before the sum, for the model's sake."""
    factor, before, carry = view.state[:3]
    if digit == BLANK:
        return down(fall, cell=(carry, before))
    tens, ones = divmod(int(factor) * int(digit), 10)
    more, total = divmod(value(view.cell[0]) + ones + int(carry), 10)
    return up(again, factor, digit, str(tens + more), str(tens), str(ones), cell=(str(total), before))


@phase("1")
def fall(view: View) -> Line:
    """Goes down to where the next walk begins."""
    return up(next_factor) if view.cell[1] == BLANK else down(fall)


@phase("b 0 1")
def next_factor(view: View) -> Line:
    return climb(view) if view.b == BLANK else product(within(view, view.b, BLANK, "0"))


@phase("1")
def climb(view: View) -> Line:
    """Goes up to the highest place of the total."""
    return down(drop) if view.cell[1] == BLANK else up(climb)
