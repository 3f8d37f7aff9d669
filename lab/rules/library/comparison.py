"""Tells whether the first of two different numbers is the larger: first by length, then UNIT digits at a time."""

from lab.rules.library.long_division import long_division

UNIT = 3


def exceeds(a, b):
    if len(a) != len(b):
        return len(a) > len(b)
    while a[:UNIT] == b[:UNIT]:
        a, b = a[UNIT:], b[UNIT:]
    return a[:UNIT] > b[:UNIT]


def float_exceeds(a, b):
    whole1, decimals1 = a.split(".")
    whole2, decimals2 = b.split(".")
    if whole1 != whole2:
        return exceeds(whole1, whole2)
    while decimals1[:UNIT] == decimals2[:UNIT]:
        decimals1 = decimals1[UNIT:]
        decimals2 = decimals2[UNIT:]
    return decimals1[:UNIT] > decimals2[:UNIT]


def scientific_exceeds(a, b):
    significand1, power1 = a.split("e")
    significand2, power2 = b.split("e")
    if power1 != power2:
        return int(power1) > int(power2)
    while significand1[:UNIT] == significand2[:UNIT]:
        significand1 = significand1[UNIT:]
        significand2 = significand2[UNIT:]
    return significand1[:UNIT] > significand2[:UNIT]


def fraction_exceeds(a, b):
    """Compares one decimal at a time, by long division; proper fractions mostly differ in one of the first decimals."""
    p, q = a.split("/")
    r, s = b.split("/")
    x, y = "0", "0"
    while x == y:
        x, p = long_division(p + "0", q)
        y, r = long_division(r + "0", s)
    return int(x) > int(y)
