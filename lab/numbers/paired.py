"""Compares two models on the same problems: by how much the second is better, and whether that can be chance.

Problems that both models solve, or that neither solves, say nothing about the difference. Only the discordant pairs
count: those that the second model gained, and those that it lost.
"""

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

from scipy.special import bdtr

from lab.numbers.statistics import Estimate, wilson


class Difference(NamedTuple):
    """How a second model differs from a first on the same problems."""

    both: int
    """Problems that both models solve."""
    gained: int
    """Problems that only the second solves."""
    lost: int
    """Problems that only the first solves."""
    neither: int

    @classmethod
    def of(cls, first: Sequence[bool], second: Sequence[bool]) -> "Difference":
        """Counts whether each problem was solved by the first and by the second model, in the same order.

        Raises ValueError if the lengths differ or if there are no problems.
        """
        pairs = [(bool(old), bool(new)) for old, new in zip(first, second, strict=True)]
        if not pairs:
            raise ValueError("no problems to compare two models on")
        return cls(*(pairs.count(pair) for pair in ((True, True), (False, True), (True, False), (False, False))))

    @property
    def n(self) -> int:
        return sum(self)

    @property
    def first(self) -> Estimate:
        """The share that the first model solves."""
        return wilson(self.both + self.lost, self.n)

    @property
    def second(self) -> Estimate:
        """The share that the second model solves."""
        return wilson(self.both + self.gained, self.n)

    @property
    def estimate(self) -> Estimate:
        """Second share minus first, with its 95 % interval (Newcombe 1998, method 10, for paired proportions).

        It is computed from the Wilson intervals of both shares. Unlike a bootstrap interval, it has a width even if no
        pair is discordant.
        """
        new, old, phi = self.second, self.first, self._correlation()

        def distance(up: float, down: float) -> float:
            return math.sqrt(max(0.0, up**2 - 2 * phi * up * down + down**2))

        value = (self.gained - self.lost) / self.n
        low = value - distance(new.value - new.low, old.high - old.value)
        high = value + distance(new.high - new.value, old.value - old.low)
        return Estimate(value, low, high, self.n)

    def _correlation(self) -> float:
        """The phi coefficient of both successes, corrected for continuity; 0 if a model solves all problems or none."""
        both, gained, lost, neither = self
        margins = (both + gained) * (both + lost) * (neither + gained) * (neither + lost)
        if not margins:
            return 0.0
        surplus = both * neither - gained * lost
        return (max(0.0, surplus - self.n / 2) if surplus > 0 else surplus) / math.sqrt(margins)

    @property
    def p(self) -> float:
        """McNemar's exact test (1947): how likely a split at least this unequal is if gains and losses are equally
        likely."""
        return _mcnemar(min(self.gained, self.lost), self.gained + self.lost)

    def detectable(self, level: float = 0.05) -> float | None:
        """The smallest difference of shares that would have p < `level` with this number of discordant pairs.

        Too few pairs cannot show any difference (for 0.05, fewer than six), so as many as can are assumed. None if
        there are not as many problems.
        """
        fewest = next(pairs for pairs in itertools.count(1) if _mcnemar(0, pairs) < level)
        discordant = max(self.gained + self.lost, fewest)
        if self.n < fewest:
            return None
        fewer = max(side for side in range(discordant // 2 + 1) if side == 0 or _mcnemar(side, discordant) < level)
        return (discordant - 2 * fewer) / self.n


def _mcnemar(fewer: int, discordant: int) -> float:
    """How likely it is that a fair coin, thrown once for each discordant pair, shows one of its sides at most `fewer`
    times."""
    return min(1.0, 2 * float(bdtr(fewer, discordant, 0.5))) if discordant else 1.0


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values adjusted for multiple testing (Holm 1979), in the same order.

    Calling those below 0.05 significant keeps the probability of any false positive among them at or below 0.05.
    """
    adjusted, highest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda index: p_values[index])):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = highest
    return adjusted
