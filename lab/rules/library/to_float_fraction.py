"""Long division that continues after the point until the remainder is 0."""

from lab.rules.library.long_division import long_division


def divide_out(a):
    p, q = a.split("/")
    whole, rest = long_division(p, q)
    decimals = ""
    while rest != "0":
        digit, rest = long_division(rest + "0", q)
        decimals = decimals + digit
    return whole + "." + (decimals or "0")
