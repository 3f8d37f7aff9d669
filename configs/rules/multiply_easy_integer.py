"""A number times a short one: from the right, each digit times the whole short number."""

UNIT = 1
BASE = 10**UNIT


def multiply(a, b):
    result = ""
    carry = 0
    while a:
        total = int(a[-UNIT:]) * int(b[:]) + carry
        result = str(total % BASE).zfill(UNIT) + result
        carry = total // BASE
        a = a[:-UNIT]
    return (str(carry) + result).lstrip("0") or "0"
