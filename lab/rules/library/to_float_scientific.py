"""Moves the point to the right, UNIT digits at a time."""

UNIT = 3


def to_float(num):
    significand, power = num.split("e")
    whole, decimals = significand.split(".")
    power = int(power)
    decimals = decimals.ljust(power, "0")
    while power:
        step = min(power, UNIT)
        whole = whole + decimals[:step]
        decimals = decimals[step:]
        power = power - step
    return whole + "." + (decimals or "0")
