"""Additions column by column: digits, carries, and the columns that a carry has passed through.

Column 0 holds the ones digits. The terms are those of Quirke and Barez (arXiv 2310.13121, 2402.02619):

    column k     3  2  1  0
    a            3  5  7  8
    b            0  4  2  6
    sum s_k      4  0  0  4
    carry c_k    1  1  1  0     into column k
    tricase      -  =  =  +     sign of a_k + b_k - 9: - up to 8, = for 9, + from 10
    chain        2  1  0  0     columns with sum 9 right below k, which a carry into k has to pass

Shapes: B sums, K columns (as many as the longest sum has digits).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

STRATA = ("no carry", "carry", "chain")
"""The strata of a column, by the digit sum of the column below it: at most 8 (no carry), at least 10 (carry), or 9
(chain: columns further below decide)."""


class Columns(NamedTuple):
    """All arrays are integers of shape (B, K)."""

    a: np.ndarray
    b: np.ndarray
    """Digits; 0 if a number has no digit in the column."""
    sum: np.ndarray
    carry: np.ndarray
    """The carry into the column: 0 or 1."""

    @classmethod
    def of(cls, numbers: Sequence[tuple[int, int]], width: int = 1) -> "Columns":
        """The columns of some additions. Raises ValueError if there are none.

        Args:
            numbers: pairs of non-negative numbers.
            width: the minimum of K, the number of columns.
        """
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
        """-1, 0 or 1: the sum of the digits is at most 8, exactly 9, or at least 10.

        So the column stops a carry, passes it on, or makes one.
        """
        return np.sign(self.a + self.b - 9)

    @property
    def chain(self) -> np.ndarray:
        """How many columns in a row, right below each column, have the digit sum 9."""
        lengths = np.zeros_like(self.a)
        for k in range(1, lengths.shape[1]):
            lengths[:, k] = (lengths[:, k - 1] + 1) * (self.tricase[:, k - 1] == 0)
        return lengths

    @property
    def stratum(self) -> np.ndarray:
        """The index into `STRATA`; the ones column counts as "no carry"."""
        below = np.full_like(self.a, -1)
        below[:, 1:] = self.tricase[:, :-1]
        return np.select([below == -1, below == 1], [0, 1], 2)


def _digits(number: int, width: int) -> list[int]:
    """The digits of a number, ones first."""
    return [int(digit) for digit in reversed(f"{number:0{width}d}")]
