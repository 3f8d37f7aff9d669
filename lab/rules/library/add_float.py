"""Gives both numbers the same number of decimals, adds their digits, and puts the point back."""

from lab.rules.library.add_integer import add


def add_floats(a, b):
    w, d = a.split(".")
    v, e = b.split(".")
    places = max(len(d), len(e))
    total = add(w + d.ljust(places, "0"), v + e.ljust(places, "0"))
    total = total.zfill(places + 1)
    return total[:-places] + "." + (total[-places:].rstrip("0") or "0")
