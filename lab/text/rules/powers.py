"""What the rules of scientific notation have in common: a number as digits times a power of ten, and back."""


def to_digits(num):
    significand, power = num.split("e")
    whole, decimals = significand.split(".")
    return whole + decimals, int(power) - len(decimals)


def align_powers(a, b):
    digits1, power1 = to_digits(a)
    digits2, power2 = to_digits(b)
    power = min(power1, power2)
    digits1 = digits1 + "0" * (power1 - power)
    digits2 = digits2 + "0" * (power2 - power)
    return digits1, digits2, power


def from_digits(digits, power):
    power = power + len(digits) - 1
    decimals = digits[1:].rstrip("0") or "0"
    return digits[0] + "." + decimals + "e" + str(power)
