"""Pairs of additions that differ in one carry, for interventions on it.

carry-only (column j)    The source is the base with a_j + b_j raised from some t in 0..8 to t + 10. So s_j stays the
                         same, the carry into column j + 1 changes from 0 to 1, and s_{j+1} grows by one. Nothing else
                         changes.
through-nine (column j)  The same, but a_{j+1} + b_{j+1} is nine in both. So the carry into column j + 2 changes too,
                         although no operand digit of column j + 1 does: a component that brings this carry must have
                         read column j.
cross-digit (column k)   Base and source are drawn independently, except that their carries into k differ. If the model
                         takes only the carry from the source, digit k of the base becomes (a_k + b_k of the base +
                         carry of the source) mod 10, which is the digit of neither sum.

In pairs that share their digits, exchanging the whole answer looks like exchanging the carry. Cross-digit pairs tell
the two apart (lab/probing/addition/interchange.py). All draws depend only on (seed, length, column).

`same_carry` gives each sum a partner with the same carry and other digits. A component that holds the carry has the
same output for both; a component that fetches digits does not. `with_totals` sets the total of two digits.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lab.errors import TaskError
from lab.numbers.additions import addition
from lab.numbers.columns import Columns
from lab.numbers.philox import philox
from lab.probing.addition.carries import SumContrast, carry_contrast

_BLOCK = 512
"""Candidates drawn at a time."""


class Pairs(NamedTuple):
    """Base and source, row by row. The operands of both have the same length, and so do their sums."""

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

    def contrast(self, subject: Any) -> SumContrast:
        """The pairs as a subject reads them; see `carry_contrast`."""
        return carry_contrast(subject, self.base, self.source, self.column)

    @property
    def target(self) -> np.ndarray:
        """Digit `column` of the base's sum with the source's carry, (N,)."""
        base, source, k = Columns.of(self.base), Columns.of(self.source), self.column
        return (base.a[:, k] + base.b[:, k] + source.carry[:, k]) % 10


def operands(stratum: str, length: int, seed: int, count: int) -> list[tuple[int, int]]:
    """The operands of the first sums of a stream (lab/numbers/additions.py)."""
    drawn = (addition(stratum, length, seed, index) for index in range(count))
    return [(int(item.a), int(str(item.b))) for item in drawn]


def carry_only(length: int, column: int, count: int, seed: int) -> Pairs:
    """Pairs of which only the source has a carry out of `column`. `Pairs.column` is `column` + 1, into which it goes.

    Both numbers have `length` digits. Raises TaskError unless 0 <= column < length - 1: a carry out of the last column
    would make the sum longer.
    """
    if not 0 <= column < length - 1:
        raise TaskError(f"column {column} of {length} digits: a carry out of it should go into a column below {length}")
    return _carry_turned_on(length, column, count, column + 1, ("carry-only", seed, length, column))


def through_nine(length: int, column: int, count: int, seed: int) -> Pairs:
    """Pairs of which only the source has a carry out of `column`, which goes on through the next column, whose digits
    add up to nine. `Pairs.column` is the column after that, `column` + 2.

    Both numbers have `length` digits. Raises TaskError unless 0 <= column < length - 2.
    """
    if not 0 <= column < length - 2:
        raise TaskError(f"column {column} of {length} digits: the carry should reach a column below {length}")
    return _carry_turned_on(length, column, count, column + 2, ("through-nine", seed, length, column))


def same_carry(sums: Sequence[tuple[int, int]], column: int, seed: int) -> list[tuple[int, int]]:
    """For each sum, another one whose two digits in `column` have a different total but produce the same carry. All
    other digits stay the same.

    `column`: below that of the highest digits, which may not become 0. Raises TaskError for a number without a digit
    above `column`.
    """
    generator, unit = np.random.Generator(philox("same carry", seed, column)), 10**column
    totals = []
    for a, b in sums:
        total, carried = a // unit % 10 + b // unit % 10, (a % unit + b % unit) // unit
        as_large = range(10 - carried, 19) if total + carried >= 10 else range(10 - carried)
        totals.append(int(generator.choice([one for one in as_large if one != total])))
    return with_totals(sums, column, totals, seed)


def with_totals(
    sums: Sequence[tuple[int, int]], column: int, totals: Sequence[int], seed: int
) -> list[tuple[int, int]]:
    """Draws two new digits for `column` of each sum, which add up to a given total. All other digits stay.

    Args:
        sums: the sums.
        column: the column whose digits change.
        totals: for each sum, the total of its new digits, from 0 to 18.
        seed: the seed of the draw.

    Raises TaskError for a number without a digit above `column`, and for a total that no two digits have.
    """
    generator, unit = np.random.Generator(philox("with totals", seed, column)), 10**column
    found = []
    for (a, b), total in zip(sums, totals, strict=True):
        if min(a, b) < 10 * unit:
            raise TaskError(f"{a} and {b}: both should have a digit above column {column}")
        if not 0 <= total <= 18:
            raise TaskError(f"total {total}: should be from 0 to 18, as two digits add up to")
        first = int(generator.integers(max(0, total - 9), min(9, total) + 1))
        of_a, of_b = a // unit % 10, b // unit % 10
        found.append((a + (first - of_a) * unit, b + (total - first - of_b) * unit))
    return found


def _carry_turned_on(length: int, column: int, count: int, into: int, name: tuple[object, ...]) -> Pairs:
    """Pairs whose operands differ only in the digits of `column`, and whose carries differ only in the columns from
    `column` + 1 to `into`; the digits of the columns between add up to nine."""

    def draw(generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        a_BK, b_BK = (_digits(generator, length) for _ in "ab")
        total = generator.integers(0, 9, _BLOCK)
        # digits of a pair with a given sum, uniform among all such pairs
        a_BK[:, column] = generator.integers(0, total + 1)
        b_BK[:, column] = total - a_BK[:, column]
        b_BK[:, column + 1 : into] = 9 - a_BK[:, column + 1 : into]
        source_a, source_b = a_BK.copy(), b_BK.copy()
        source_a[:, column] = generator.integers(total + 1, 10)
        source_b[:, column] = total + 10 - source_a[:, column]
        return np.stack([a_BK, b_BK]), np.stack([source_a, source_b])

    def fits(base: Columns, source: Columns) -> np.ndarray:
        changed = base.carry != source.carry
        return changed[:, column + 1 : into + 1].all(1) & (changed.sum(1) == into - column)

    return _drawn(draw, fits, count, into, name)


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
    if count < 1:
        raise TaskError(f"{count} pairs: should be 1 or more")
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
