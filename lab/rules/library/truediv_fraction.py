"""Multiplies the first fraction by the reciprocal of the second."""

from lab.rules.library.multiply_fraction import multiply_fractions


def divide_fractions(a, b):
    r, s = b.split("/")
    return multiply_fractions(a, s + "/" + r)
