"""The smaller of two different numbers; lab/text/rules/comparison.py compares them."""

from lab.text.rules.comparison import fraction_exceeds


def smaller(a, b):
    bigger = fraction_exceeds(a, b)
    return b if bigger else a
