"""Multiplies the digits, adds the powers, and puts the point after the first digit. Neither number is zero."""

from lab.rules.library.multiply_integer import multiply


def multiply_scientific(a, b):
    s, p = a.split("e")
    t, q = b.split("e")
    p, q = int(p) - len(s), int(q) - len(t)
    total = multiply(s.replace(".", ""), t.replace(".", ""))
    power = p + q + len(total) + 3
    return total[0] + "." + (total[1:].rstrip("0") or "0") + "e" + str(power)
