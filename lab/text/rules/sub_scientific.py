"""Both numbers in units of the smaller power of ten, and the difference of the digits."""

from lab.text.rules.powers import align_powers, from_digits
from lab.text.rules.sub_integer import subtract


def subtract_scientific(a, b):
    digits1, digits2, power = align_powers(a, b)
    difference = subtract(digits1, digits2)
    return from_digits(difference, power)
