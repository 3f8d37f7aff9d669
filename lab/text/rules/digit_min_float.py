"""As many decimals on both sides, digit by digit, and the point again."""

from lab.text.rules.decimals import align, place_point
from lab.text.rules.digit_min_integer import digit_min


def digit_min_floats(a, b):
    digits1, digits2, places = align(a, b)
    result = digit_min(digits1, digits2)
    return place_point(result, places)
