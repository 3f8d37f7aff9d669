"""Writes the quotient as a fraction, and cancels the greatest common divisor."""

from lab.rules.library.euclid import cancelled, gcd


def divide_to_fraction(a, b):
    common = gcd(a, b)
    numerator = cancelled(a, common)
    denominator = cancelled(b, common)
    return numerator + "/" + denominator
