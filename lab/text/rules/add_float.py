"""As many decimals on both sides, the sum of the digits, and the point again."""

from lab.text.rules.add_integer import add
from lab.text.rules.decimals import align, place_point


def add_floats(a, b):
    digits1, digits2, places = align(a, b)
    total = add(digits1, digits2)
    return place_point(total, places)
