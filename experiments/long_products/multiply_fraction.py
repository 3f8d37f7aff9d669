"""lab/text/rules/multiply_fraction.py with its products and quotients written out digit by digit."""

from lab.text.rules.euclid import gcd
from lab.text.rules.long_division import long_division
from lab.text.rules.multiply_integer import multiply


def multiply_fractions(a, b):
    p, q = a.split("/")
    r, s = b.split("/")
    common = gcd(int(p), int(s))
    p, _ = long_division(p, str(common))
    s, _ = long_division(s, str(common))
    common = gcd(int(r), int(q))
    r, _ = long_division(r, str(common))
    q, _ = long_division(q, str(common))
    numerator = multiply(p, r)
    denominator = multiply(q, s)
    return numerator + "/" + denominator
