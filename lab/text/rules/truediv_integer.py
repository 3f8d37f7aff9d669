"""The quotient as a fraction, its common divisor cancelled."""

from lab.text.rules.euclid import gcd


def divide_to_fraction(a, b):
    p, q = int(a), int(b)
    common = gcd(p, q)
    numerator = p // common
    denominator = q // common
    return str(numerator) + "/" + str(denominator)
