"""The product of the digits has the decimals of both numbers."""

from lab.text.rules.decimals import place_point
from lab.text.rules.multiply_integer import multiply


def multiply_floats(a, b):
    whole1, decimals1 = a.split(".")
    whole2, decimals2 = b.split(".")
    places = len(decimals1) + len(decimals2)
    product = multiply(whole1 + decimals1, whole2 + decimals2)
    return place_point(product, places)
