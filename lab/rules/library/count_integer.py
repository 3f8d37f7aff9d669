"""Counts how often the digit occurs, in UNIT digits at a time."""

UNIT = 3


def count(num, digit):
    total = 0
    while num:
        total = total + num[:UNIT].count(digit)
        num = num[UNIT:]
    return str(total)
