"""Gives both numbers the same number of decimals, subtracts their digits, and puts the point back."""

from lab.rules.library.sub_integer import subtract


def subtract_floats(a, b):
    w, d = a.split(".")
    v, e = b.split(".")
    places = max(len(d), len(e))
    total = subtract(w + d.ljust(places, "0"), v + e.ljust(places, "0"))
    total = total.zfill(places + 1)
    return total[:-places] + "." + (total[-places:].rstrip("0") or "0")
