"""Pairs of additions that differ in one carry, for interventions on it.

carry-only (column j)    The source is the base with a_j + b_j changed from t in 0..8 to t + 10. s_j stays the same, the
                         carry into column j + 1 turns from 0 to 1, and s_{j+1} grows by one. Nothing else changes.
cross-digit (column k)   Base and source are drawn independently, except that their carries into k differ. If only the
                         carry is taken from the source, digit k of the base becomes (a_k + b_k of the base + carry of
                         the source) mod 10, which is the digit of neither sum.

In pairs that share their digits, exchanging the whole answer looks like exchanging the carry; cross-digit pairs tell
the two apart (lab/probing/instruments/interchange.py). All draws depend only on (seed, length, column).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from lab.errors import TaskError
from lab.numbers.columns import Columns
from lab.numbers.philox import philox

_BLOCK = 512
"""Candidates drawn at a time."""


class Pairs(NamedTuple):
    """Base and source, row by row. Both have operands of the same length, and so have their sums."""

    base: list[tuple[int, int]]
    source: list[tuple[int, int]]
    column: int
    """The column whose digit changes if the base gets the source's carry."""

    def part(self, rows: slice) -> "Pairs":
        """Some of the pairs."""
        return Pairs(self.base[rows], self.source[rows], self.column)

    def where(self, chosen_N: np.ndarray) -> "Pairs":
        """The pairs for which `chosen_N` is true."""
        base, source = ([side[row] for row in np.flatnonzero(chosen_N)] for side in (self.base, self.source))
        return Pairs(base, source, self.column)

    @property
    def target(self) -> np.ndarray:
        """Digit `column` of the base's sum with the source's carry, (N,)."""
        base, source, k = Columns.of(self.base), Columns.of(self.source), self.column
        return (base.a[:, k] + base.b[:, k] + source.carry[:, k]) % 10


def carry_only(length: int, column: int, count: int, seed: int) -> Pairs:
    """Pairs whose base has no carry out of `column`, and whose source has one. `Pairs.column` is the column that the
    carry goes into, `column` + 1.

    Both numbers have `length` digits. Raises TaskError unless 0 <= column < length - 1, because a carry out of the last
    column would make the sum longer.
    """
    if not 0 <= column < length - 1:
        raise TaskError(f"column {column} of {length} digits: a carry out of it should reach a column below {length}")

    def draw(generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        a_BK, b_BK = (_digits(generator, length) for _ in "ab")
        total = generator.integers(0, 9, _BLOCK)
        # digits of a pair with a given sum, uniform among all such pairs
        a_BK[:, column] = generator.integers(0, total + 1)
        b_BK[:, column] = total - a_BK[:, column]
        source_a, source_b = a_BK.copy(), b_BK.copy()
        source_a[:, column] = generator.integers(total + 1, 10)
        source_b[:, column] = total + 10 - source_a[:, column]
        return np.stack([a_BK, b_BK]), np.stack([source_a, source_b])

    def fits(base: Columns, source: Columns) -> np.ndarray:
        changed = base.carry != source.carry
        return changed[:, column + 1] & (changed.sum(1) == 1)

    return _drawn(draw, fits, count, column + 1, ("carry-only", seed, length, column))


def cross_digit(length: int, column: int, count: int, seed: int) -> Pairs:
    """Pairs whose carries into `column` differ, on average as often from 0 to 1 as from 1 to 0.

    Both numbers have `length` digits. Raises TaskError unless 0 < column < length: there is no carry into the ones.
    """
    if not 0 < column < length:
        raise TaskError(f"column {column} of {length} digits: should be from 1 to {length - 1}")

    def draw(generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        base, source = (np.stack([_digits(generator, length) for _ in "ab"]) for _ in "bs")
        return base, source

    def fits(base: Columns, source: Columns) -> np.ndarray:
        target = (base.a[:, column] + base.b[:, column] + source.carry[:, column]) % 10
        return (base.carry[:, column] != source.carry[:, column]) & (target != source.sum[:, column])

    return _drawn(draw, fits, count, column, ("cross-digit", seed, length, column))


def _digits(generator: np.random.Generator, length: int) -> np.ndarray:
    """(block, length), ones first; no number begins with 0."""
    digits_BK = generator.integers(0, 10, (_BLOCK, length))
    digits_BK[:, -1] = generator.integers(1, 10, _BLOCK)
    return digits_BK


def _drawn(
    draw: Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]],
    fits: Callable[[Columns, Columns], np.ndarray],
    count: int,
    column: int,
    name: tuple[object, ...],
) -> Pairs:
    generator = np.random.Generator(philox(*name))
    found: list[tuple[tuple[int, int], tuple[int, int]]] = []
    while len(found) < count:
        base, source = draw(generator)
        pairs = list(zip(_numbers(base), _numbers(source), strict=True))
        ends = [len(str(sum(left))) == len(str(sum(right))) for left, right in pairs]
        pairs = [pair for pair, same in zip(pairs, ends, strict=True) if same]
        left, right = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        width = max(len(str(sum(pair))) for pair in [*left, *right])
        ok = fits(Columns.of(left, width), Columns.of(right, width))
        found += [pair for pair, good in zip(pairs, ok, strict=True) if good]
    return Pairs([base for base, _ in found[:count]], [source for _, source in found[:count]], column)


def _numbers(digits_2BK: np.ndarray) -> list[tuple[int, int]]:
    numbers = [[int("".join(map(str, row[::-1]))) for row in side.tolist()] for side in digits_2BK]
    return list(zip(*numbers, strict=True))
