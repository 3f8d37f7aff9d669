"""Gives both numbers the same number of decimals, takes the smaller digit of each pair, and puts the point back."""

from lab.rules.library.digit_min_integer import digit_min


def digit_min_floats(a, b):
    w, d = a.split(".")
    v, e = b.split(".")
    places = max(len(d), len(e))
    total = digit_min(w + d.ljust(places, "0"), v + e.ljust(places, "0"))
    total = total.zfill(places + 1)
    return total[:-places] + "." + (total[-places:].rstrip("0") or "0")
