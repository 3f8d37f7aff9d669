"""lab/text/rules/add_fraction.py with its sum, products and quotients written out digit by digit."""

from lab.text.rules.add_integer import add
from lab.text.rules.euclid import gcd
from lab.text.rules.long_division import long_division
from lab.text.rules.multiply_integer import multiply


def add_fractions(a, b):
    p, q = a.split("/")
    r, s = b.split("/")
    common = gcd(int(q), int(s))
    q, _ = long_division(q, str(common))
    factor, _ = long_division(s, str(common))
    x = multiply(p, factor)
    y = multiply(r, q)
    total = add(x, y)
    common = gcd(int(total), common)
    numerator, _ = long_division(total, str(common))
    factor, _ = long_division(s, str(common))
    denominator = multiply(factor, q)
    return numerator + "/" + denominator
