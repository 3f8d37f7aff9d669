"""Subtracts from the right, UNIT digits at a time; the larger number comes first. A step may borrow from the next."""

UNIT = 3
BASE = 10**UNIT


def subtract(a, b):
    result = ""
    borrow = 0
    while a:
        total = BASE + int(a[-UNIT:]) - int(b[-UNIT:] or 0) - borrow
        result = str(total % BASE).zfill(UNIT) + result
        borrow = 1 - total // BASE
        a, b = a[:-UNIT], b[:-UNIT]
    return result.lstrip("0") or "0"
