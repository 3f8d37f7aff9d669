"""The remainder of long division, without keeping the quotient."""

from lab.rules.library.sub_integer import subtract


def remainder(a, b):
    start = len(b) - 1
    rest = a[:start]
    a = a[start:]
    while a:
        rest = rest.lstrip("0") + a[0]
        while int(rest) >= int(b):
            rest = subtract(rest, b)
        a = a[1:]
    return rest.lstrip("0") or "0"
