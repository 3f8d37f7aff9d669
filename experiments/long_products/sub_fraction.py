"""lab/text/rules/sub_fraction.py with its difference, products and quotients written out digit by digit."""

from lab.text.rules.euclid import gcd
from lab.text.rules.long_division import long_division
from lab.text.rules.multiply_integer import multiply
from lab.text.rules.sub_integer import subtract


def subtract_fractions(a, b):
    p, q = a.split("/")
    r, s = b.split("/")
    common = gcd(int(q), int(s))
    q, _ = long_division(q, str(common))
    factor, _ = long_division(s, str(common))
    x = multiply(p, factor)
    y = multiply(r, q)
    difference = subtract(x, y)
    common = gcd(int(difference), common)
    numerator, _ = long_division(difference, str(common))
    factor, _ = long_division(s, str(common))
    denominator = multiply(factor, q)
    return numerator + "/" + denominator
