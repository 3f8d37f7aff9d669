"""So many figures, with the number of digits behind the first as the power."""

from lab.text.rules.length_integer import length
from lab.text.rules.rounding import round_digits


def significant(num, figures):
    power = length(num[1:])
    return round_digits(num, int(power), int(figures))
