"""The rest of long division, without keeping the quotient."""


def remainder(a, b):
    divisor = int(b)
    start = len(b) - 1
    rest = int(a[:start] or 0)
    a = a[start:]
    while a:
        rest = rest * 10 + int(a[0])
        digit = rest // divisor
        rest = rest - digit * divisor
        a = a[1:]
    return str(rest)
