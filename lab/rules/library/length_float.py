"""Removes the point, and counts the digits as in an integer."""

from lab.rules.library.length_integer import length


def length_of_float(num):
    digits = num.replace(".", "")
    return length(digits)
