"""Long division: subtracts the divisor, shifted under the highest digits, as often as it goes, then shifts it down.

Cells hold the digit of what is left of the dividend, of the shifted divisor, and of the quotient. Walks alternate: one
up subtracts, one down compares what is left with the divisor. The highest place where they differ decides, and going
down, it comes first. The quotient's digit, how often the divisor was subtracted, is in the state.
"""

from experiments.nupa.rules.output import drop
from experiments.nupa.rules.phases import Line, View, down, phase, starts, stay, up, value, within, written
from experiments.nupa.tape import BLANK, SAME

EQUAL, LESS, MORE = "equal", "less", "more"


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


@phase("operator")
def keep(view: View) -> Line:
    """Writes the quotient's digit at the divisor's lowest place. At place 0, it was the last one."""
    times = view.state[0]
    if not view.ones:
        return up(ascend, cell=(SAME, SAME, times))
    return up(gather, cell=(times,)) if view.operator == "<floordiv_integer>" else up(summit)


@phase("1")
def ascend(view: View) -> Line:
    """Goes up to the place above the divisor."""
    return down(shift, EQUAL) if _divisor(view) == BLANK else up(ascend)


@phase("0 1")
def shift(view: View) -> Line:
    """Moves the divisor down, and compares. The state: how both compare above, and its digit from the place above."""
    so_far, above = view.state[:2]
    digit = _divisor(view)
    so_far = _compared(view, so_far, above)
    on, *state = (compare, so_far, "0") if digit == BLANK else (shift, so_far, digit)
    return down(on, *state, cell=(SAME, above))


@phase("0")
def summit(view: View) -> Line:
    """Goes up to the highest digit of what is left."""
    return down(drop) if view.cell[0] == BLANK else up(summit)


@phase("0 2")
def gather(view: View) -> Line:
    """Goes up and puts the quotient in the place of what is left."""
    return down(drop) if view.cell[0] == BLANK else up(gather, cell=(written(view.cell[2]),))
