"""Cancelled before the products grow (Knuth, TAOCP 4.5.1): what is left to cancel divides gcd(q, s)."""

from lab.text.rules.euclid import gcd


def add_fractions(a, b):
    p, q = a.split("/")
    r, s = b.split("/")
    p, q, r, s = int(p), int(q), int(r), int(s)
    common = gcd(q, s)
    q = q // common
    x, y = p * (s // common), r * q
    total = x + y
    common = gcd(total, common)
    numerator = total // common
    denominator = s // common * q
    return str(numerator) + "/" + str(denominator)
