"""Long multiplication: multiplies the first number by each digit of the second, from the right.

The last digit of each sum is a digit of the result; the other digits are added to the next product.
"""

from lab.rules.library.add_integer import add

UNIT = 3
BASE = 10**UNIT


def times_digit(a, digit):
    result = ""
    carry = 0
    while a:
        total = int(a[-UNIT:]) * int(digit) + carry
        result = str(total % BASE).zfill(UNIT) + result
        carry = total // BASE
        a = a[:-UNIT]
    return (str(carry) + result).lstrip("0") or "0"


def multiply(a, b):
    result = ""
    rest = ""
    while b:
        product = times_digit(a, b[-1])
        total = add(product, rest)
        result = total[-1] + result
        rest = total[:-1]
        b = b[:-1]
    return (rest + result).lstrip("0") or "0"
