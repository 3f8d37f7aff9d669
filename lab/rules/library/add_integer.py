"""Adds from the right, UNIT digits at a time (Number Cookbook A.5.1, with the zero fill that its rule lacks)."""

UNIT = 3
BASE = 10**UNIT


def add(a, b):
    result = ""
    carry = 0
    while a or b:
        total = int(a[-UNIT:] or 0) + int(b[-UNIT:] or 0) + carry
        result = str(total % BASE).zfill(UNIT) + result
        carry = total // BASE
        a, b = a[:-UNIT], b[:-UNIT]
    return (str(carry) + result).lstrip("0") or "0"
