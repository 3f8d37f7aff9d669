"""The larger of two different numbers; lab/text/rules/comparison.py compares them."""

from lab.text.rules.comparison import float_exceeds


def larger(a, b):
    bigger = float_exceeds(a, b)
    return a if bigger else b
