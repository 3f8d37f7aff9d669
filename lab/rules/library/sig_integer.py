"""Rounds to a number of figures; the power is the number of digits after the first."""

from lab.rules.library.length_integer import length
from lab.rules.library.rounding import round_digits


def significant(num, figures):
    power = length(num[1:])
    return round_digits(num, int(power), int(figures))
