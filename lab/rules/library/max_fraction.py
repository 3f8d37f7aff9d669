"""The larger of two different numbers; lab/rules/library/comparison.py compares them."""

from lab.rules.library.comparison import fraction_exceeds


def larger(a, b):
    bigger = fraction_exceeds(a, b)
    return a if bigger else b
