"""The larger of two different numbers; lab/rules/library/comparison.py compares them."""

from lab.rules.library.comparison import exceeds


def larger(a, b):
    bigger = exceeds(a, b)
    return a if bigger else b
