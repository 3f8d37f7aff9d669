"""Writes a number from its highest place down: out of the first word of each cell, or out of a number of the question.

Leading zeros are passed over, one a line. Decimals end at the first cell without a digit.
"""

from experiments.nupa.rules.phases import Line, View, down, phase, stay, stop, written
from experiments.nupa.tape import BLANK


def has_point(view: View) -> bool:
    """Whether the answer of the task whose operator stands here has a point."""
    return view.operator.endswith("_float>")


@phase("0 ones")
def drop(view: View) -> Line:
    return down(drop) if view.cell[0] in ("0", BLANK) and not view.ones else out(view)


@phase("0 ones")
def out(view: View) -> Line:
    digit = written(view.cell[0])
    return stay(whole, wrote=(digit,)) if view.ones else down(out, wrote=(digit,))


@phase("operator")
def whole(view: View) -> Line:
    """After the ones digit."""
    return down(point) if has_point(view) else stop()


@phase("0")
def point(view: View) -> Line:
    digit = view.cell[0]
    return stop(".", "0") if digit == BLANK else down(decimals, wrote=(".", digit))


@phase("0")
def decimals(view: View) -> Line:
    digit = view.cell[0]
    return stop() if digit == BLANK else down(decimals, wrote=(digit,))


@phase("a b ones")
def copy(view: View) -> Line:
    """Writes the number of the question that the state names, a or b."""
    name, digit = view.state[0], _copied(view)
    if view.ones:
        return stay(copy_whole, name, wrote=(digit,))
    return down(copy, name) if digit == BLANK else down(copy, name, wrote=(digit,))


@phase("operator")
def copy_whole(view: View) -> Line:
    return down(copy_point, view.state[0]) if has_point(view) else stop()


@phase("a b")
def copy_point(view: View) -> Line:
    return down(copy_decimals, view.state[0], wrote=(".", _copied(view)))


@phase("a b")
def copy_decimals(view: View) -> Line:
    digit = _copied(view)
    return stop() if digit == BLANK else down(copy_decimals, view.state[0], wrote=(digit,))


def _copied(view: View) -> str:
    return view.a if view.state[0] == "a" else view.b
