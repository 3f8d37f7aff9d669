"""Drops LEAP digits at a time, then one at a time, until the wanted digit comes first."""

UNIT = 3
LEAP = 3 * UNIT


def get_digit(num, position):
    position = int(position)
    while position >= LEAP:
        num = num[LEAP:]
        position = position - LEAP
    while position:
        num = num[1:]
        position = position - 1
    return num[0]
