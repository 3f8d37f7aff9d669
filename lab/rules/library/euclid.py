"""The greatest common divisor (Euclid): each step divides by the remainder of the step before."""

from lab.rules.library.long_division import long_division
from lab.rules.library.mod_integer import remainder


def gcd(a, b):
    while b != "0":
        rest = remainder(a, b)
        a, b = b, rest
    return a


def cancelled(a, divisor):
    """The number divided by a divisor, which is mostly 1, so that there is nothing to cancel."""
    if divisor == "1":
        return a
    quotient, _ = long_division(a, divisor)
    return quotient
