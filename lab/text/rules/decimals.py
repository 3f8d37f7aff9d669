"""What the rules of floats have in common: the same number of decimals on both sides, and the point put back."""


def align(a, b):
    whole1, decimals1 = a.split(".")
    whole2, decimals2 = b.split(".")
    places = max(len(decimals1), len(decimals2))
    digits1 = whole1 + decimals1.ljust(places, "0")
    digits2 = whole2 + decimals2.ljust(places, "0")
    return digits1, digits2, places


def place_point(digits, places):
    digits = digits.zfill(places + 1)
    decimals = digits[-places:].rstrip("0") or "0"
    return digits[:-places] + "." + decimals
