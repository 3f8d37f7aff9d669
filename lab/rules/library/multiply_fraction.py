"""Cancels crosswise before multiplying, so that the product is irreducible."""

from lab.rules.library.euclid import cancelled, gcd
from lab.rules.library.multiply_integer import multiply


def multiply_fractions(a, b):
    p, q = a.split("/")
    r, s = b.split("/")
    common = gcd(p, s)
    p = cancelled(p, common)
    s = cancelled(s, common)
    common = gcd(r, q)
    r = cancelled(r, common)
    q = cancelled(q, common)
    numerator = multiply(p, r)
    denominator = multiply(q, s)
    return numerator + "/" + denominator
