"""The smaller of two different numbers; lab/text/rules/comparison.py compares them."""

from lab.text.rules.comparison import exceeds


def smaller(a, b):
    bigger = exceeds(a, b)
    return b if bigger else a
