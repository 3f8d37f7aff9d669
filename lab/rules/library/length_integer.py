"""Counts and drops UNIT digits at a time."""

UNIT = 3


def length(num):
    count = 0
    while num:
        count = count + len(num[:UNIT])
        num = num[UNIT:]
    return str(count)
