"""The power is the number of digits between the first digit and the point."""

from lab.rules.library.length_integer import length


def float_to_scientific(num):
    whole, decimals = num.split(".")
    power = length(whole[1:])
    decimals = (whole[1:] + decimals).rstrip("0") or "0"
    return whole[0] + "." + decimals + "e" + power
