"""Both numbers in units of the smaller power of ten, and the sum of the digits."""

from lab.text.rules.add_integer import add
from lab.text.rules.powers import align_powers, from_digits


def add_scientific(a, b):
    digits1, digits2, power = align_powers(a, b)
    total = add(digits1, digits2)
    return from_digits(total, power)
