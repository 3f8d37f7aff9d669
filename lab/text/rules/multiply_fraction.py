"""Cancelled crosswise before multiplying, so that the products are irreducible."""

from lab.text.rules.euclid import gcd


def multiply_fractions(a, b):
    p, q = a.split("/")
    r, s = b.split("/")
    p, q, r, s = int(p), int(q), int(r), int(s)
    common = gcd(p, s)
    p, s = p // common, s // common
    common = gcd(r, q)
    r, q = r // common, q // common
    numerator = p * r
    denominator = q * s
    return str(numerator) + "/" + str(denominator)
