"""The smaller of two different numbers; lab/rules/library/comparison.py compares them."""

from lab.rules.library.comparison import float_exceeds


def smaller(a, b):
    bigger = float_exceeds(a, b)
    return b if bigger else a
