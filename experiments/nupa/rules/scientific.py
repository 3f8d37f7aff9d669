"""Writes scientific notation, from the highest digit down. The exponent's digits stand below the number (`counting`)."""

from experiments.nupa.rules.counting import PASSED, below, digits, empty
from experiments.nupa.rules.phases import Line, View, down, phase, stop, up
from experiments.nupa.tape import BLANK


@phase
def rise(view: View) -> Line:
    return down(leading) if empty(view) else up(rise)


def _digit(view: View) -> str:
    return view.cell[2] if view.cell[2] != BLANK else view.a


def _power(view: View) -> tuple[str, ...]:
    return ("e", *digits(*view.cell[1:]))


@phase
def leading(view: View) -> Line:
    return down(first_decimal, wrote=(_digit(view), "."))


@phase
def first_decimal(view: View) -> Line:
    if below(view):
        return stop("0", *_power(view))
    return down(left_out, wrote=("0",)) if view.cell[1] == PASSED else down(more_decimals, wrote=(_digit(view),))


@phase
def more_decimals(view: View) -> Line:
    if below(view):
        return stop(*_power(view))
    return down(left_out) if view.cell[1] == PASSED else down(more_decimals, wrote=(_digit(view),))


@phase
def left_out(view: View) -> Line:
    """Goes down over what is not written."""
    return stop(*_power(view)) if below(view) else down(left_out)
