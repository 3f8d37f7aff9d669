"""The power is the number of digits after the first."""

from lab.rules.library.length_integer import length


def to_scientific(num):
    power = length(num[1:])
    decimals = num[1:].rstrip("0") or "0"
    return num[0] + "." + decimals + "e" + power
