"""Like the sum in scientific notation (add_scientific.py); the first number is the larger one, and not its equal."""

from lab.rules.library.sub_integer import subtract


def subtract_scientific(a, b):
    s, p = a.split("e")
    t, q = b.split("e")
    p, q = int(p) - len(s), int(q) - len(t)
    power = min(p, q)
    s, t = s.replace(".", "") + "0" * (p - power), t.replace(".", "") + "0" * (q - power)
    total = subtract(s, t)
    power = power + len(total) + 1
    return total[0] + "." + (total[1:].rstrip("0") or "0") + "e" + str(power)
