"""Interval estimates: every figure of the lab carries its n and one of these intervals."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import stdtrit


class Estimate(NamedTuple):
    """A value with its 95 % interval, and the number of samples behind it."""

    value: float
    low: float
    high: float
    """Bounds of the 95 % interval; infinite if nothing is known, as for the mean of a single value."""
    n: int

    def to_json(self) -> dict[str, Any]:
        """The fields by name. An infinite bound becomes None, because JSON cannot write it."""
        return {name: part if math.isfinite(part) else None for name, part in self._asdict().items()}

    @classmethod
    def from_json(cls, read: Mapping[str, Any]) -> Self:
        """Reads what `to_json` wrote; None becomes infinite again."""
        value, low, high = (read[name] for name in ("value", "low", "high"))
        return cls(
            math.inf if value is None else value,
            -math.inf if low is None else low,
            math.inf if high is None else high,
            read["n"],
        )


_Z = 1.959964
"""The quantile of the normal distribution for 95 %."""


def wilson(successes: int, n: int) -> Estimate:
    """Score interval of a proportion (Wilson 1927), 95 %.

    Args:
        successes: how many of the samples are right.
        n: how many samples there are.

    Raises ValueError unless 0 <= successes <= n and n > 0.
    """
    if not 0 <= successes <= n or n == 0:
        raise ValueError(f"{successes} of {n} is not a proportion")
    return _score_interval(successes / n, n)


def pooled(estimates: Sequence[Estimate]) -> Estimate:
    """The share over all problems of several groups, computed from the share of each, with Wilson's interval.

    Raises ValueError if there are no problems.
    """
    return wilson(sum(round(part.value * part.n) for part in estimates), sum(part.n for part in estimates))


def _score_interval(p: float, n: int) -> Estimate:
    centre = (p + _Z * _Z / (2 * n)) / (1 + _Z * _Z / n)
    half = _Z / (1 + _Z * _Z / n) * math.sqrt(p * (1 - p) / n + _Z * _Z / (4 * n * n))
    # The bounds are exactly 0 and 1 at the ends; rounding must not push them past the estimate.
    return Estimate(p, min(p, max(0.0, centre - half)), max(p, min(1.0, centre + half)), n)


_SEED, _RESAMPLES = 0, 2000
"""The seed and the number of resamples of the bootstrap."""
_DRAWN = 2**20
"""How many numbers the bootstrap holds in memory at a time, unless one resample has more."""
_MANY = 10_000
"""With more distinct values than this, the quantiles of the bootstrap are computed and not drawn: for a million values,
drawing would take minutes, and it differs from the computation by no more than from a drawing with another seed."""


def bootstrap_mean(values: Sequence[float]) -> Estimate:
    """Percentile bootstrap of a mean (Efron 1979), 95 %. The interval is infinite for a single value.

    Resampling n values is the same as drawing how often each distinct value occurs, which is faster. Raises ValueError
    if there are no values.
    """
    if len(values) == 0:
        raise ValueError("no values to take the mean of")
    n = len(values)
    if n == 1:
        return Estimate(float(values[0]), -math.inf, math.inf, n)
    distinct_U, counts_U = np.unique(np.asarray(values, dtype=float), return_counts=True)
    mean = float(counts_U @ distinct_U / n)
    if len(distinct_U) > _MANY:
        return Estimate(mean, *_limits_of_resampling(distinct_U - mean, counts_U / n, mean, n), n)
    return Estimate(mean, *_drawn_limits(tuple(distinct_U.tolist()), tuple(counts_U.tolist())), n)


@lru_cache(maxsize=256)
def _drawn_limits(distinct: tuple[float, ...], counts: tuple[int, ...]) -> tuple[float, float]:
    """The 2.5 % and 97.5 % quantiles of the means of resamples. Several readings of the same answers mostly agree, so
    the same values come again."""
    distinct_U, counts_U, n = np.array(distinct), np.array(counts), sum(counts)
    draw = np.random.default_rng(_SEED)
    means_R = np.concatenate(
        [draw.multinomial(n, counts_U / n, part) @ distinct_U / n for part in _in_pieces(len(distinct_U))]
    )
    low, high = np.quantile(means_R, [0.025, 0.975])
    return float(low), float(high)


def _in_pieces(width: int) -> Iterator[int]:
    """How many of the resamples to draw at a time, if each consists of `width` numbers. The draws are the same as if
    all were drawn at once."""
    most = max(1, _DRAWN // width)
    for start in range(0, _RESAMPLES, most):
        yield min(most, _RESAMPLES - start)


def _limits_of_resampling(deviations_U: np.ndarray, shares_U: np.ndarray, mean: float, n: int) -> tuple[float, float]:
    """The 2.5 % and 97.5 % quantiles of the means of all resamples: the Cornish-Fisher expansion with the skewness of
    the values (Hall 1992, The Bootstrap and Edgeworth Expansion, section 2.5); what it neglects shrinks with 1/n.

    Args:
        deviations_U: the distinct values, minus their mean.
        shares_U: the share of each among the values.
        mean: their mean.
        n: the number of values.
    """
    variance, third = (float(shares_U @ deviations_U**power) for power in (2, 3))
    error = math.sqrt(variance / n)
    shift = error * third / variance**1.5 * (_Z * _Z - 1) / (6 * math.sqrt(n))
    return mean + shift - _Z * error, mean + shift + _Z * error


def mean_share(values: Sequence[float] | np.ndarray) -> Estimate:
    """Mean of values from 0 to 1, such as digit match, with Wilson's 95 % interval.

    Wilson's interval is made for values that are all 0 or 1, which vary the most for a given mean, so it is wide enough
    for all others. A bootstrap would have hardly any width for a few values that are nearly all 1. Raises ValueError if
    there are no values.
    """
    if len(values) == 0:
        raise ValueError("no values to take the mean of")
    return _score_interval(float(np.mean(values)), len(values))


def bootstrap_ratio(numerators: Sequence[float], denominators: Sequence[float]) -> Estimate:
    """Percentile bootstrap of the ratio of two sums over the same items, 95 %.

    Each draw takes an item's numerator together with its denominator. A bound is infinite if enough draws contain only
    zero denominators; for a single item, both bounds are infinite.

    Args:
        numerators: one number for each item.
        denominators: one number for each item, in the same order.

    Raises ValueError if the lengths differ, or if all denominators are 0.
    """
    above_N, below_N = np.asarray(numerators, dtype=float), np.asarray(denominators, dtype=float)
    if len(above_N) != len(below_N) or not below_N.any():
        sizes = f"{len(above_N)} numerators to {len(below_N)} denominators"
        raise ValueError(f"no ratio of {sizes}: there should be as many of each, and one denominator should not be 0")
    n = len(above_N)
    if n == 1:
        return Estimate(float(above_N[0] / below_N[0]), -math.inf, math.inf, n)
    draw, above, below = np.random.default_rng(_SEED), [], []
    for part in _in_pieces(n):
        drawn_PN = draw.integers(n, size=(part, n))
        above.append(above_N[drawn_PN].sum(1))
        below.append(below_N[drawn_PN].sum(1))
    above_R, below_R = np.concatenate(above), np.concatenate(below)
    ratios_R = np.divide(above_R, below_R, out=np.full(_RESAMPLES, np.inf), where=below_R != 0)
    # no interpolation between draws, because one of them may be infinite
    low, high = np.quantile(ratios_R, [0.025, 0.975], method="inverted_cdf")
    return Estimate(float(above_N.sum() / below_N.sum()), float(low), float(high), n)


def student_mean(values: Sequence[float], low: float = -math.inf, high: float = math.inf) -> Estimate:
    """Mean of a few independent values, such as those of several seeds, with Student's 95 % interval.

    Args:
        values: the values. For a single value, the interval is [low, high].
        low: the smallest possible value; the interval is cut there.
        high: the largest possible value.

    Raises ValueError if there are no values.
    """
    if len(values) == 0:
        raise ValueError("no values to take the mean of")
    n, mean = len(values), float(np.mean(values))
    half = float(stdtrit(n - 1, 0.975) * np.std(values, ddof=1)) / math.sqrt(n) if n > 1 else math.inf
    return Estimate(mean, max(low, mean - half), min(high, mean + half), n)


def seeds_proportion(shares: Sequence[float], n: int, same_problems: bool = True) -> Estimate:
    """Mean of the proportions of several seeds, each measured on `n` problems.

    If all seeds were asked the same problems, seeds and problems are two sources of error. So the half-widths of
    Student's interval over the seeds and of Wilson's over the problems are added in quadrature. The problems count
    once: what is easy for one seed may be easy for all. If each seed has problems of its own, Student's interval
    contains both errors; the interval is then the wider of the two, because seeds that agree do not make the mean
    certain. For a single seed it is Wilson's. The estimate's n is the number of seeds, or for a single seed the number
    of its problems. Raises ValueError if there are no seeds.

    Args:
        shares: the proportion of each seed, 0 to 1.
        n: how many problems each seed was asked.
        same_problems: whether all seeds were asked the same problems, and not each its own.
    """
    mean = student_mean(shares, 0, 1)
    over_problems = _score_interval(mean.value, n if same_problems else n * len(shares))
    if len(shares) == 1:
        return over_problems
    if not same_problems:
        return mean._replace(low=min(mean.low, over_problems.low), high=max(mean.high, over_problems.high))
    low, high = (math.hypot(mean.value - a, mean.value - b) for a, b in zip(mean[1:3], over_problems[1:3], strict=True))
    return mean._replace(low=max(0.0, mean.value - low), high=min(1.0, mean.value + high))
