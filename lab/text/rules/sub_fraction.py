"""As the sum of fractions (add_fraction.py), the larger number first."""

from lab.text.rules.euclid import gcd


def subtract_fractions(a, b):
    p, q = a.split("/")
    r, s = b.split("/")
    p, q, r, s = int(p), int(q), int(r), int(s)
    common = gcd(q, s)
    q = q // common
    x, y = p * (s // common), r * q
    difference = x - y
    common = gcd(difference, common)
    numerator = difference // common
    denominator = s // common * q
    return str(numerator) + "/" + str(denominator)
