"""The larger of two different numbers; lab/text/rules/comparison.py compares them."""

from lab.text.rules.comparison import exceeds


def larger(a, b):
    bigger = exceeds(a, b)
    return a if bigger else b
