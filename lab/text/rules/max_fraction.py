"""The larger of two different numbers; lab/text/rules/comparison.py compares them."""

from lab.text.rules.comparison import fraction_exceeds


def larger(a, b):
    bigger = fraction_exceeds(a, b)
    return a if bigger else b
