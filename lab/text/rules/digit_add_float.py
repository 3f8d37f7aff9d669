"""As many decimals on both sides, digit by digit, and the point again."""

from lab.text.rules.decimals import align, place_point
from lab.text.rules.digit_add_integer import digit_add


def digit_add_floats(a, b):
    digits1, digits2, places = align(a, b)
    result = digit_add(digits1, digits2)
    return place_point(result, places)
