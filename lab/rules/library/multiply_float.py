"""Multiplies the digits; the product has as many decimals as both numbers together."""

from lab.rules.library.multiply_integer import multiply


def multiply_floats(a, b):
    w, d = a.split(".")
    v, e = b.split(".")
    places = len(d) + len(e)
    total = multiply(w + d, v + e)
    total = total.zfill(places + 1)
    return total[:-places] + "." + (total[-places:].rstrip("0") or "0")
