"""The first number times UNIT digits of the second, from the right; the last UNIT digits of each sum are final."""

UNIT = 1
BASE = 10**UNIT


def multiply(a, b):
    result = ""
    carry = 0
    while b:
        product = int(a) * int(b[-UNIT:])
        total = product + carry
        result = str(total % BASE).zfill(UNIT) + result
        carry = total // BASE
        b = b[:-UNIT]
    return (str(carry) + result).lstrip("0") or "0"
