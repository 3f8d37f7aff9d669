"""Numbers in scientific notation: comparison, sums, differences, and the same number as a float.

Sums and differences take from the exponents, which the tasks draw at most five apart, only which one is larger and by
how much their ones digits differ. The number with the smaller exponent moves down by that many places. Cells hold the
digit of the number with the larger exponent (then of the result), of the other one, of the result's exponent, and, at
place 0, which number has the larger exponent.
"""

from experiments.nupa.rules.phases import PHASES, Line, View, down, phase, starts, stay, stop, up, value
from experiments.nupa.rules.places import TRAILING
from experiments.nupa.tape import BLANK, SAME

EQUAL = "equal"


@starts("max_scientific", "max_hard_scientific", "add_scientific", "sub_scientific")
def start_larger(view: View) -> Line:
    return stay(larger_power, EQUAL)


@starts("min_scientific", "min_hard_scientific")
def start_smaller(view: View) -> Line:
    return stay(smaller_power, EQUAL)


def _of(first: str, second: str, before: str) -> str:
    """Which of two digits is larger; `before` if they are equal."""
    return before if value(first) == value(second) else "a" if value(first) > value(second) else "b"


@phase("c d")
def larger_power(view: View) -> Line:
    """Goes up; the state names the number with the larger exponent so far."""
    _, _, c, d = view.asked
    return down(settle, view.state[0]) if c == d == BLANK else up(larger_power, _of(c, d, view.state[0]))


@phase("c d")
def smaller_power(view: View) -> Line:
    _, _, c, d = view.asked
    return down(settle, view.state[0]) if c == d == BLANK else up(smaller_power, _of(d, c, view.state[0]))


@phase("operator")
def settle(view: View) -> Line:
    """Goes down to place 0, and from there on by the task."""
    name = view.state[0]
    if not view.ones:
        return down(settle, name)
    if view.operator.startswith(("<add", "<sub")):
        return stay(spread, name)
    if name != EQUAL:
        return stay(copy_digits, name)
    return stay(larger_digits if view.operator.startswith("<max") else smaller_digits)


@phase("a b")
def larger_digits(view: View) -> Line:
    """Goes down; the highest place where the numbers differ decides."""
    found = _of(view.a, view.b, EQUAL)
    return down(larger_digits) if found == EQUAL and view.a != BLANK else stay(home, "a" if found == EQUAL else found)


@phase("a b")
def smaller_digits(view: View) -> Line:
    found = _of(view.b, view.a, EQUAL)
    return down(smaller_digits) if found == EQUAL and view.a != BLANK else stay(home, "a" if found == EQUAL else found)


@phase("ones")
def home(view: View) -> Line:
    return stay(copy_digits, view.state[0]) if view.ones else up(home, view.state[0])


@phase("a b ones")
def copy_digits(view: View) -> Line:
    """Writes the significand of the number that the state names, then its exponent."""
    name = view.state[0]
    digit = view.a if name == "a" else view.b
    if digit == BLANK:
        return up(copy_home, name, wrote=("e",))
    return down(copy_digits, name, wrote=(digit, ".") if view.ones else (digit,))


@phase("ones")
def copy_home(view: View) -> Line:
    return stay(copy_rise, view.state[0]) if view.ones else up(copy_home, view.state[0])


@phase("c d")
def copy_rise(view: View) -> Line:
    name = view.state[0]
    digit = view.asked[2] if name == "a" else view.asked[3]
    return down(copy_power, name) if digit == BLANK else up(copy_rise, name)


@phase("c d ones")
def copy_power(view: View) -> Line:
    name = view.state[0]
    digit = view.asked[2] if name == "a" else view.asked[3]
    return stop(digit) if view.ones else down(copy_power, name, wrote=(digit,))


# Sums and differences --------------------------------------------------------------------------------------------


@phase("c d")
def spread(view: View) -> Line:
    """By how many places the other number moves down."""
    name, (_, _, c, d) = view.state[0], view.asked
    apart = (value(d) - value(c) if name == "b" else value(c) - value(d)) % 10
    return stay(
        load_both, "b" if name == "b" else "a", str(apart), cell=(SAME, SAME, SAME, "b" if name == "b" else "a")
    )


@phase("a b")
def load_both(view: View) -> Line:
    name, apart = view.state[:2]
    if view.a == view.b == BLANK:
        return up(back, apart)
    return down(load_both, name, apart, cell=(view.b, view.a) if name == "b" else (view.a, view.b))


@phase("ones")
def back(view: View) -> Line:
    """Goes up to place 0. The state: by how many more places the other number moves down."""
    apart = view.state[0]
    if not view.ones:
        return up(back, apart)
    return stay(combine) if apart == "0" else stay(lower, str(int(apart) - 1), "0")


@phase("1")
def lower(view: View) -> Line:
    """Moves the other number down. The state: how often again, and its digit from the place above."""
    apart, above = view.state[:2]
    digit = view.cell[1]
    return up(back, apart, cell=(SAME, above)) if digit == BLANK else down(lower, apart, digit, cell=(SAME, above))


@phase("operator")
def combine(view: View) -> Line:
    return down(bottom, "total" if view.operator.startswith("<add") else "difference")


@phase("0 1")
def bottom(view: View) -> Line:
    first = view.state[0]
    return up(PHASES[first], "0", TRAILING) if view.cell[0] == view.cell[1] == BLANK else down(bottom, first)


@phase("0 1 ones")
def total(view: View) -> Line:
    """The state: the carry, and whether only zeros have come so far, which are not written."""
    more, digit = divmod(value(view.cell[0]) + value(view.cell[1]) + int(view.state[0]), 10)
    return _result(view, total, overflow, digit, str(more))


@phase("0 1 ones")
def difference(view: View) -> Line:
    less = value(view.cell[0]) - value(view.cell[1]) - int(view.state[0])
    return _result(view, difference, overflow, less % 10, str(int(less < 0)))


def _result(view: View, again: object, after: object, digit: int, carry: str) -> Line:
    if view.ones:
        return up(after, carry, cell=(str(digit),))  # type: ignore[arg-type]
    zero = view.state[1] == TRAILING and digit == 0
    return up(again, carry, *([TRAILING] if zero else []), cell=(BLANK if zero else str(digit),))  # type: ignore[arg-type]


@phase()
def overflow(view: View) -> Line:
    """Above the ones digit: a carry makes a new leading digit."""
    carry = view.state[0]
    return down(exponent, carry, cell=("1",)) if carry == "1" else down(exponent, "0")


@phase("c d 3")
def exponent(view: View) -> Line:
    """Copies the larger exponent, one higher if the result has a new leading digit. The state: what is added, and which
    number the exponent is taken from."""
    carry, name = view.state[0], view.cell[3] if view.state[1] == BLANK else view.state[1]
    digit = view.asked[3] if name == "b" else view.asked[2]
    if digit == BLANK and carry == "0":
        return up(turn)
    more, digit = divmod(value(digit) + int(carry), 10)
    return up(exponent, str(more), name, cell=(SAME, SAME, str(digit)))


@phase()
def turn(view: View) -> Line:
    """Above the exponent, and above a new leading digit."""
    return down(lead)


@phase("0 ones")
def lead(view: View) -> Line:
    """Writes the leading digit. If it is 0, the digits first go up, and the exponent becomes less."""
    digit = view.cell[0]
    if view.ones and digit == "0":
        return down(end_of_digits)
    return down(lead) if digit == BLANK else down(second, wrote=(digit, "."))


@phase("0")
def end_of_digits(view: View) -> Line:
    return up(raised, BLANK) if view.cell[0] == BLANK else down(end_of_digits)


@phase("0 ones")
def raised(view: View) -> Line:
    """Moves the digits up; the state is the digit from the place below."""
    cell = (view.state[0],)
    return stay(less_power, "1", cell=cell) if view.ones else up(raised, view.cell[0], cell=cell)


@phase("2")
def less_power(view: View) -> Line:
    """Subtracts from the exponent; the state is what is subtracted from this digit."""
    if view.state[0] == "0":
        return down(lead)
    less = value(view.cell[2]) - 1
    return up(less_power, str(int(less < 0)), cell=(SAME, SAME, str(less % 10)))


@phase("0")
def second(view: View) -> Line:
    digit = view.cell[0]
    return up(power_home, wrote=("0", "e")) if digit == BLANK else down(further, wrote=(digit,))


@phase("0")
def further(view: View) -> Line:
    digit = view.cell[0]
    return up(power_home, wrote=("e",)) if digit == BLANK else down(further, wrote=(digit,))


@phase("ones")
def power_home(view: View) -> Line:
    return stay(power_rise) if view.ones else up(power_home)


@phase("2")
def power_rise(view: View) -> Line:
    return down(power_drop) if view.cell[2] == BLANK else up(power_rise)


@phase("2 ones")
def power_drop(view: View) -> Line:
    return down(power_drop) if view.cell[2] == "0" and not view.ones else power_out(view)


@phase("2 ones")
def power_out(view: View) -> Line:
    return stop(view.cell[2]) if view.ones else down(power_out, wrote=(view.cell[2],))
