"""Cancels before the products grow (Knuth, TAOCP 4.5.1): what is then left to cancel divides gcd(q, s)."""

from lab.rules.library.add_integer import add
from lab.rules.library.euclid import cancelled, gcd
from lab.rules.library.multiply_integer import multiply


def add_fractions(a, b):
    p, q = a.split("/")
    r, s = b.split("/")
    common = gcd(q, s)
    q = cancelled(q, common)
    t = cancelled(s, common)
    x = multiply(p, t)
    y = multiply(r, q)
    total = add(x, y)
    common = gcd(total, common)
    numerator = cancelled(total, common)
    s = cancelled(s, common)
    denominator = multiply(s, q)
    return numerator + "/" + denominator
