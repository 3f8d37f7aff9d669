"""Long division: subtracts the divisor, shifted under the highest digits, as often as it goes, then shifts it down.

Cells hold the digit of what is left of the dividend (if it has changed), of the shifted divisor, and of the quotient.
Walks alternate: one up subtracts, one down compares what is left with the divisor. The highest place where they differ
decides, and going down, it comes first. The quotient's digit, how often the divisor was subtracted, is in the state.
"""

from experiments.nupa.rules.output import drop
from experiments.nupa.rules.phases import Line, View, down, phase, starts, up, value
from experiments.nupa.tape import BLANK

EQUAL, LESS, MORE = "equal", "less", "more"


def _left(view: View) -> int:
    """The digit of what is left of the dividend."""
    return value(view.a if view.cell[0] == BLANK else view.cell[0])


def _divisor(view: View) -> str:
    return view.cell[1]


def _compared(view: View, so_far: str, divisor: str) -> str:
    """How what is left compares with the divisor, from the highest place down to this one."""
    left, other = _left(view), value(divisor)
    return so_far if so_far != EQUAL or left == other else MORE if left > other else LESS


def _with(view: View, left: str | None = None, divisor: str | None = None, quotient: str | None = None) -> tuple[str, ...]:
    """The cell with some of its words changed."""
    changed = (left, divisor, quotient)
    return tuple(old if new is None else new for old, new in zip(view.cell, changed, strict=False))


@starts("floordiv_integer", "mod_integer", "mod_easy_integer")
def start(view: View) -> Line:
    return load(view)


@phase
def load(view: View) -> Line:
    """Copies the divisor."""
    return judge(view) if view.b == BLANK else up(load, cell=_with(view, divisor=view.b))


@phase
def judge(view: View) -> Line:
    """Above the divisor: if the dividend has a digit here, the divisor goes one place up; if not, division begins."""
    return down(compare, EQUAL, "0") if view.a == BLANK else down(sink)


@phase
def sink(view: View) -> Line:
    return up(lift, BLANK) if _divisor(view) == BLANK else down(sink)


@phase
def lift(view: View) -> Line:
    """Moves the divisor up; the state is its digit from the place below."""
    below, digit = view.state[0], _divisor(view)
    return up(judge if digit == BLANK else lift, digit, cell=_with(view, divisor=below))


@phase
def compare(view: View) -> Line:
    """The state: how both compare above this place, and the quotient's digit so far."""
    so_far, times = view.state[:2]
    if _divisor(view) != BLANK:
        return down(compare, _compared(view, so_far, _divisor(view)), times)
    return up(keep, times) if so_far == LESS else up(subtract, "0", times)


@phase
def subtract(view: View) -> Line:
    """The state: the borrow, and how often the divisor was subtracted before."""
    borrow, times = view.state[:2]
    left = _left(view) - value(_divisor(view)) - int(borrow)
    cell = _with(view, left=str(left % 10))
    if _divisor(view) != BLANK:
        return up(subtract, str(int(left < 0)), times, cell=cell)
    return down(compare, MORE if left else EQUAL, str(int(times) + 1), cell=cell)


@phase
def keep(view: View) -> Line:
    """Writes the quotient's digit at the divisor's lowest place. At place 0, it was the last one."""
    cell = _with(view, quotient=view.state[0])
    if not view.ones:
        return up(ascend, cell=cell)
    if view.operator == "<floordiv_integer>":
        return up(gather, cell=(view.state[0],))
    return up(settle, cell=(str(_left(view)),))


@phase
def ascend(view: View) -> Line:
    """Goes up to the place above the divisor."""
    return down(shift, EQUAL, BLANK) if _divisor(view) == BLANK else up(ascend)


@phase
def shift(view: View) -> Line:
    """Moves the divisor down, and compares. The state: how both compare above, and its digit from the place above."""
    so_far, above = view.state[:2]
    digit = _divisor(view)
    so_far = _compared(view, so_far, above)
    cell = _with(view, divisor=above)
    return down(compare, so_far, "0", cell=cell) if digit == BLANK else down(shift, so_far, digit, cell=cell)


@phase
def settle(view: View) -> Line:
    """Goes up and copies what is left."""
    return down(drop) if view.a == BLANK else up(settle, cell=(str(_left(view)),))


@phase
def gather(view: View) -> Line:
    """Goes up and copies the quotient."""
    return down(drop) if view.a == BLANK else up(gather, cell=(view.cell[2],))
