"""As many decimals on both sides, the difference of the digits, and the point again."""

from lab.text.rules.decimals import align, place_point
from lab.text.rules.sub_integer import subtract


def subtract_floats(a, b):
    digits1, digits2, places = align(a, b)
    difference = subtract(digits1, digits2)
    return place_point(difference, places)
