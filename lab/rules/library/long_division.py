"""Long division: one digit of the quotient at a time, from the left, by subtracting the divisor as often as it fits.

The first digits of the dividend, fewer than the divisor has, are taken at once, because they are less than the divisor.
"""

from lab.rules.library.sub_integer import subtract


def long_division(a, b):
    start = len(b) - 1
    rest = a[:start]
    a = a[start:]
    quotient = ""
    while a:
        rest = rest.lstrip("0") + a[0]
        digit = 0
        while int(rest) >= int(b):
            rest = subtract(rest, b)
            digit = digit + 1
        quotient = quotient + str(digit)
        a = a[1:]
    return quotient.lstrip("0") or "0", rest.lstrip("0") or "0"
