"""The smaller of two different numbers; lab/text/rules/comparison.py compares them."""

from lab.text.rules.comparison import scientific_exceeds


def smaller(a, b):
    bigger = scientific_exceeds(a, b)
    return b if bigger else a
