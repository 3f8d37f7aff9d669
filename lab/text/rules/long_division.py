"""One digit of the quotient at a time, from the left; the first digits, which are less than the divisor, at once."""


def long_division(a, b):
    divisor = int(b)
    start = len(b) - 1
    rest = int(a[:start] or 0)
    a = a[start:]
    quotient = ""
    while a:
        rest = rest * 10 + int(a[0])
        digit = rest // divisor
        rest = rest - digit * divisor
        quotient = quotient + str(digit)
        a = a[1:]
    return quotient.lstrip("0") or "0", rest
