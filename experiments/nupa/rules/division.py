"""Long division: subtracts the divisor, shifted under the highest digits, as often as it goes, then shifts it down.

Cells hold the digit of what is left of the dividend, of the shifted divisor, and of the quotient. Walks alternate: one
up subtracts, one down compares what is left with the divisor. The highest place where they differ decides, and going
down, it comes first. The quotient's digit, how often the divisor was subtracted, is in the state.

A fraction becomes a float in the same way, except that the divisor moves on below the ones digit until nothing is left.
"""

from experiments.nupa.rules.output import drop
from experiments.nupa.rules.phases import Line, View, down, phase, starts, stay, stop, up, value, within, written
from experiments.nupa.tape import BLANK, SAME

EQUAL, LESS, MORE, ZERO, DECIMAL = "equal", "less", "more", "nothing", "decimal"


def _divisor(view: View) -> str:
    return view.cell[1]


def _compared(view: View, so_far: str, divisor: str) -> str:
    """How what is left compares with the divisor, from the highest place down to this one."""
    left, other = value(view.cell[0]), value(divisor)
    return so_far if so_far != EQUAL or left == other else MORE if left > other else LESS


@starts("floordiv_integer", "mod_integer", "mod_easy_integer")
def start(view: View) -> Line:
    return stay(load)


@phase("a b")
def load(view: View) -> Line:
    """Copies dividend and divisor. The state is the divisor's digit at the place below: if it has one under the highest
    digit of the dividend, division begins; if not, the divisor first goes up."""
    if view.a != BLANK:
        return up(load, view.b, cell=(view.a, view.b))
    return down(sink_to_ones) if view.state[0] == BLANK else down(compare, EQUAL, "0")


@starts("to_float_fraction")
def start_fraction(view: View) -> Line:
    return stay(load_fraction)


@phase("a c")
def load_fraction(view: View) -> Line:
    """Like `load`, for a numerator and a denominator, which may be the longer one."""
    digit, divisor = view.asked[0], view.asked[2]
    if digit != BLANK or divisor != BLANK:
        return up(load_fraction, divisor, cell=(written(digit), divisor))
    return down(sink_to_ones) if view.state[0] == BLANK else down(compare, EQUAL, "0")


@phase("1 ones")
def sink_to_ones(view: View) -> Line:
    return lift(within(view, BLANK)) if view.ones else down(sink_to_ones)


@phase("1")
def lift(view: View) -> Line:
    """Moves the divisor up; the state is its digit from the place below."""
    below, digit = view.state[0], _divisor(view)
    return up(judge if digit == BLANK else lift, *([] if digit == BLANK else [digit]), cell=(SAME, below))


@phase("0")
def judge(view: View) -> Line:
    """Above the divisor: if the dividend has a digit here, the divisor goes up again."""
    return down(compare, EQUAL, "0") if view.cell[0] == BLANK else down(sink)


@phase("1")
def sink(view: View) -> Line:
    return up(lift) if _divisor(view) == BLANK else down(sink)


@phase("0 1")
def compare(view: View) -> Line:
    """The state: how both compare above this place, and the quotient's digit so far."""
    so_far, times = view.state[:2]
    if _divisor(view) != BLANK:
        return down(compare, _compared(view, so_far, _divisor(view)), times)
    return up(keep, times) if so_far == LESS else up(subtract, "0", times)


@phase("0 1")
def subtract(view: View) -> Line:
    """The state: the borrow, and how often the divisor was subtracted before."""
    borrow, times = view.state[:2]
    left = value(view.cell[0]) - value(_divisor(view)) - int(borrow)
    cell = (str(left % 10),)
    if _divisor(view) != BLANK:
        return up(subtract, str(int(left < 0)), times, cell=cell)
    return down(compare, MORE if left else EQUAL, str(int(times) + 1), cell=() if view.cell[0] == BLANK else cell)


@phase("3 operator")
def keep(view: View) -> Line:
    """Writes the quotient's digit at the divisor's lowest place. At place 0, it was the last one of integers."""
    times = view.state[0]
    cell = (SAME, SAME, times)
    if view.cell[3] == DECIMAL or view.operator == "<to_float_fraction>":
        return stay(remains, ZERO, cell=cell)
    if not view.ones:
        return up(ascend, cell=cell)
    return up(gather, cell=(times,)) if view.operator == "<floordiv_integer>" else up(summit)


@phase("0 1")
def remains(view: View) -> Line:
    """Goes up to the place above the divisor. The state: whether anything is left."""
    found = view.state[0] if view.cell[0] in (BLANK, "0") else MORE
    if _divisor(view) != BLANK:
        return up(remains, found)
    return stay(quotient_rise) if found == ZERO else down(shift, EQUAL)


@phase("2")
def quotient_rise(view: View) -> Line:
    """Goes up from below the quotient's highest digit, or from above it."""
    return stay(top) if view.cell[2] == BLANK else up(quotient_rise)


@phase("a c")
def top(view: View) -> Line:
    """Goes up to the highest digit of the quotient."""
    return down(quotient_zeros) if view.asked[0] == view.asked[2] == BLANK else up(top)


@phase("2 ones")
def quotient_zeros(view: View) -> Line:
    return down(quotient_zeros) if view.cell[2] in (BLANK, "0") and not view.ones else quotient(view)


@phase("2 ones")
def quotient(view: View) -> Line:
    digit = written(view.cell[2])
    return down(quotient_point if view.ones else quotient, wrote=(digit,))


@phase("2")
def quotient_point(view: View) -> Line:
    digit = view.cell[2]
    return stop(".", "0") if digit == BLANK else down(quotient_decimals, wrote=(".", digit))


@phase("2")
def quotient_decimals(view: View) -> Line:
    digit = view.cell[2]
    return stop() if digit == BLANK else down(quotient_decimals, wrote=(digit,))


@phase("1")
def ascend(view: View) -> Line:
    """Goes up to the place above the divisor."""
    return down(shift, EQUAL) if _divisor(view) == BLANK else up(ascend)


@phase("0 1 3 ones")
def shift(view: View) -> Line:
    """Moves the divisor down, and compares. The state: how both compare above; its digit from the place above; whether
    it goes below place 0."""
    so_far, above, below = view.state[:3]
    digit = _divisor(view)
    so_far = _compared(view, so_far, above)
    if digit != BLANK:
        decimal = DECIMAL if view.ones or view.cell[3] == DECIMAL else below
        return down(shift, so_far, digit, decimal, cell=(SAME, above))
    return down(compare, so_far, "0", cell=(SAME, above, SAME, DECIMAL) if below == DECIMAL else (SAME, above))


@phase("0")
def summit(view: View) -> Line:
    """Goes up to the highest digit of what is left."""
    return down(drop) if view.cell[0] == BLANK else up(summit)


@phase("0 2")
def gather(view: View) -> Line:
    """Goes up and puts the quotient in the place of what is left."""
    return down(drop) if view.cell[0] == BLANK else up(gather, cell=(written(view.cell[2]),))
