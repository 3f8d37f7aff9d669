"""The larger of two different numbers; lab/rules/library/comparison.py compares them."""

from lab.rules.library.comparison import float_exceeds


def larger(a, b):
    bigger = float_exceeds(a, b)
    return a if bigger else b
