"""Writes scientific notation, from the highest digit down. The digits of the exponent stand below it (`counting`)."""

from experiments.nupa.rules.counting import PASSED, below, digits
from experiments.nupa.rules.phases import Line, View, down, phase, stay, stop, up
from experiments.nupa.tape import BLANK


@phase("2")
def rise(view: View) -> Line:
    return up(rise) if view.cell[2] != BLANK else down(leading)


@phase("a 2")
def leading(view: View) -> Line:
    """If rounding has carried into a new digit, the numeral has one figure too many: one of its zeros is left out."""
    return down(skip if view.a == BLANK else first_decimal, wrote=(view.cell[2], "."))


@phase()
def skip(view: View) -> Line:
    return down(first_decimal)


@phase("0 1 2")
def first_decimal(view: View) -> Line:
    if below(view):
        return stay(power, wrote=("0",))
    if view.cell[1] == PASSED:
        return down(left_out, wrote=("0",))
    return down(more_decimals, wrote=(view.cell[2],))


@phase("0 1 2")
def more_decimals(view: View) -> Line:
    if below(view):
        return stay(power)
    return down(left_out) if view.cell[1] == PASSED else down(more_decimals, wrote=(view.cell[2],))


@phase("0")
def left_out(view: View) -> Line:
    """Goes down over what is not written."""
    return stay(power) if below(view) else down(left_out)


@phase("1 2 3")
def power(view: View) -> Line:
    return stop("e", *digits(*view.cell[1:]))
