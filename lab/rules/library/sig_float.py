"""Rounds to a number of figures; the power is the number of digits between the first digit and the point."""

from lab.rules.library.length_integer import length
from lab.rules.library.rounding import round_digits


def significant_of_float(num, figures):
    whole, decimals = num.split(".")
    power = length(whole[1:])
    return round_digits(whole + decimals, int(power), int(figures))
