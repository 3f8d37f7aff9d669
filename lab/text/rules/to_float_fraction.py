"""Long division, which goes on behind the point until nothing is left."""

from lab.text.rules.long_division import long_division


def divide_out(a):
    p, q = a.split("/")
    whole, rest = long_division(p, q)
    q = int(q)
    decimals = ""
    while rest:
        rest = rest * 10
        digit = rest // q
        rest = rest - digit * q
        decimals = decimals + str(digit)
    return whole + "." + (decimals or "0")
