"""Additions column by column: digits, carries, and what a carry has come through.

Column 0 is that of the ones. The terms are those of Quirke and Barez (arXiv 2310.13121, 2402.02619):

    column k     3  2  1  0
    a            3  5  7  8
    b            0  4  2  6
    sum s_k      4  0  0  4
    carry c_k    1  1  1  0     into column k
    tricase      -  =  =  +     of a_k + b_k: 8 and less -, 9 =, 10 and more +
    chain        2  1  0  0     columns of 9 right below k, through which a carry into k has to come

Shapes: B sums, K columns, as many as the longest sum has digits.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

STRATA = ("no carry", "carry", "chain")
"""Of a column, by the one below it: at most 8, at least 10, or 9, so that more columns below decide."""


class Columns(NamedTuple):
    """All arrays are (B, K) of integers."""

    a: np.ndarray
    b: np.ndarray
    """Digits; 0 where a number has none."""
    sum: np.ndarray
    carry: np.ndarray
    """Into the column: 0 or 1."""

    @classmethod
    def of(cls, numbers: Sequence[tuple[int, int]], width: int = 1) -> "Columns":
        """Of pairs of numbers that are not negative, `width` columns at least; raises ValueError for none at all."""
        if not numbers:
            raise ValueError("no additions")
        width = max(width, *(len(str(a + b)) for a, b in numbers))
        a_BK, b_BK, sum_BK = (
            np.array([_digits(number, width) for number in side])
            for side in ([a for a, _ in numbers], [b for _, b in numbers], [a + b for a, b in numbers])
        )
        return cls(a_BK, b_BK, sum_BK, (sum_BK - a_BK - b_BK) % 10)

    @property
    def tricase(self) -> np.ndarray:
        """-1, 0 or 1: the digits' sum is at most 8, 9, or at least 10; what it does to a carry."""
        return np.sign(self.a + self.b - 9)

    @property
    def chain(self) -> np.ndarray:
        """How many columns of 9 lie right below."""
        lengths = np.zeros_like(self.a)
        for k in range(1, lengths.shape[1]):
            lengths[:, k] = (lengths[:, k - 1] + 1) * (self.tricase[:, k - 1] == 0)
        return lengths

    @property
    def stratum(self) -> np.ndarray:
        """Index into `STRATA`. The ones column has no carry."""
        below = np.full_like(self.a, -1)
        below[:, 1:] = self.tricase[:, :-1]
        return np.select([below == -1, below == 1], [0, 1], 2)


def _digits(number: int, width: int) -> list[int]:
    """Ones first."""
    return [int(digit) for digit in reversed(f"{number:0{width}d}")]
