"""The greatest common divisor (Euclid): each step divides by the rest of the one before."""


def gcd(a, b):
    while b:
        quotient = a // b
        a, b = b, a - quotient * b
    return a
