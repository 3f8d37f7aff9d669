"""The quotient of long division; the remainder is not needed."""

from lab.rules.library.long_division import long_division


def divide(a, b):
    quotient, _ = long_division(a, b)
    return quotient
