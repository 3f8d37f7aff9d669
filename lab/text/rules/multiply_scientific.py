"""The product of the digits, the sum of the powers."""

from lab.text.rules.multiply_integer import multiply
from lab.text.rules.powers import from_digits, to_digits


def multiply_scientific(a, b):
    digits1, power1 = to_digits(a)
    digits2, power2 = to_digits(b)
    product = multiply(digits1, digits2)
    return from_digits(product, power1 + power2)
