"""Rounds to a number of figures; the power is the number of digits after the first."""

from lab.text.rules.length_integer import length
from lab.text.rules.rounding import round_digits


def significant(num, figures):
    power = length(num[1:])
    return round_digits(num, int(power), int(figures))
