"""Like the sum of fractions (add_fraction.py); the larger number comes first."""

from lab.rules.library.euclid import cancelled, gcd
from lab.rules.library.multiply_integer import multiply
from lab.rules.library.sub_integer import subtract


def subtract_fractions(a, b):
    p, q = a.split("/")
    r, s = b.split("/")
    common = gcd(q, s)
    q = cancelled(q, common)
    t = cancelled(s, common)
    x = multiply(p, t)
    y = multiply(r, q)
    difference = subtract(x, y)
    common = gcd(difference, common)
    numerator = cancelled(difference, common)
    s = cancelled(s, common)
    denominator = multiply(s, q)
    return numerator + "/" + denominator
