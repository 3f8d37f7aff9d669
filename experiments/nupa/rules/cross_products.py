"""Compares fractions by cross products: a/c is larger than b/d if a times d is larger than b times c.

Each product goes through the digits of a denominator from the highest down: the product moves up by one place, and that
many times the numerator is added. Cells hold the digits of both products, and which digits of the denominators of the
second and of the first number are done.
"""

from experiments.nupa.rules.phases import Line, View, down, phase, starts, stay, stop, up, value
from experiments.nupa.tape import BLANK, SAME, Step


@starts("max_fraction", "min_fraction")
def start(view: View) -> Line:
    return stay(second_rise)


@phase("d")
def second_rise(view: View) -> Line:
    return down(second_digit) if view.asked[3] == BLANK else up(second_rise)


@phase("c")
def first_rise(view: View) -> Line:
    return down(first_digit) if view.asked[2] == BLANK else up(first_rise)


@phase("d 2 ones")
def second_digit(view: View) -> Line:
    """Goes down to the next digit of the second denominator."""
    if view.asked[3] != BLANK and view.cell[2] == BLANK:
        on = stay if view.ones else down
        return on(second_down, view.asked[3], cell=(SAME, SAME, "x"))
    return stay(first_rise) if view.ones else down(second_digit)


@phase("c 3 ones")
def first_digit(view: View) -> Line:
    if view.asked[2] != BLANK and view.cell[3] == BLANK:
        on = stay if view.ones else down
        return on(first_down, view.asked[2], cell=(SAME, SAME, SAME, "x"))
    return stay(decide) if view.ones else down(first_digit)


@phase("ones")
def second_down(view: View) -> Line:
    return stay(second_product, view.state[0], "0") if view.ones else down(second_down, view.state[0])


@phase("ones")
def first_down(view: View) -> Line:
    return stay(first_cross, view.state[0], "0") if view.ones else down(first_down, view.state[0])


@phase("a 0")
def second_product(view: View) -> Line:
    """The state: the denominator's digit, the carry, the product's digit from the place below, and the product of two
    digits."""
    return _moved_and_added(view, second_product, second_rise, view.asked[0], 0)


@phase("b 1")
def first_cross(view: View) -> Line:
    return _moved_and_added(view, first_cross, first_rise, view.asked[1], 1)


def _moved_and_added(view: View, again: Step, after: Step, digit: str, word: int) -> Line:
    factor, carry, below = view.state[:3]
    if digit == view.cell[word] == below == BLANK and carry == "0":
        return stay(after)
    tens, ones = divmod(int(factor) * value(digit), 10)
    more, total = divmod(value(below) + ones + int(carry), 10)
    state = (factor, str(tens + more), view.cell[word], str(tens), str(ones))
    return up(again, *state, cell=(*[SAME] * word, str(total)))


@phase("operator")
def decide(view: View) -> Line:
    return stay(larger_product if view.operator == "<max_fraction>" else smaller_product, "a")


def _greater(view: View, first: str, second: str) -> str:
    one, other = map(value, view.cell[:2])
    return view.state[0] if one == other else first if one > other else second


@phase("0 1")
def larger_product(view: View) -> Line:
    if view.cell[0] == view.cell[1] == BLANK:
        return down(numerator, view.state[0])
    return up(larger_product, _greater(view, "a", "b"))


@phase("0 1")
def smaller_product(view: View) -> Line:
    if view.cell[0] == view.cell[1] == BLANK:
        return down(numerator, view.state[0])
    return up(smaller_product, _greater(view, "b", "a"))


@phase("a b ones")
def numerator(view: View) -> Line:
    name = view.state[0]
    digit = view.a if name == "a" else view.b
    if view.ones:
        return stay(denominator_rise, name, wrote=(digit, "/"))
    return down(numerator, name) if digit == BLANK else down(numerator, name, wrote=(digit,))


@phase("c d")
def denominator_rise(view: View) -> Line:
    name = view.state[0]
    digit = view.asked[2] if name == "a" else view.asked[3]
    return down(denominator, name) if digit == BLANK else up(denominator_rise, name)


@phase("c d ones")
def denominator(view: View) -> Line:
    name = view.state[0]
    digit = view.asked[2] if name == "a" else view.asked[3]
    return stop(digit) if view.ones else down(denominator, name, wrote=(digit,))
