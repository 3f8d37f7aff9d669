"""The digits without the point."""

from lab.text.rules.length_integer import length


def length_of_float(num):
    digits = num.replace(".", "")
    return length(digits)
