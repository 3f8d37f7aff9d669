"""Removes the point, and finds the digit as in an integer."""

from lab.rules.library.get_digit_integer import get_digit


def get_digit_of_float(num, position):
    digits = num.replace(".", "")
    return get_digit(digits, position)
