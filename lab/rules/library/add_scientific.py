"""Writes both numbers in units of the smaller power of ten, adds their digits, and puts the point after the first."""

from lab.rules.library.add_integer import add


def add_scientific(a, b):
    s, p = a.split("e")
    t, q = b.split("e")
    p, q = int(p) - len(s), int(q) - len(t)
    power = min(p, q)
    s, t = s.replace(".", "") + "0" * (p - power), t.replace(".", "") + "0" * (q - power)
    total = add(s, t)
    power = power + len(total) + 1
    return total[0] + "." + (total[1:].rstrip("0") or "0") + "e" + str(power)
