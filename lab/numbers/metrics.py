"""How good one answer is: exact match, digit match, dlength (Number Cookbook, section 2.3 and A.1.8, Figure 1).

Answers are compared as text, part by part: 07 is not 7, 1.50 is not 1.5, 10/8 is not 5/4.
"""

import math
from collections.abc import Mapping
from operator import eq
from typing import NamedTuple

from lab.numbers.representations import Representation, split_parts

METRICS = ("exact_match", "digit_match", "dlength")
BOUNDS = {"exact_match": (0, 1), "digit_match": (0, 1), "dlength": (0, math.inf)}
"""The smallest and the largest value that a score, and therefore also a mean of scores, can have."""


class Score(NamedTuple):
    exact_match: bool
    digit_match: float
    """The share of the truth's digits that the answer has in the same place, from 0 to 1."""
    dlength: int
    """The absolute difference in the number of digits, summed over the parts; 0 is best."""
    error: str | None = None
    """The class of the error of an integer sum or difference (lab/numbers/taxonomy.py); None for other tasks."""


def score(answer: str | None, truth: str, representation: Representation) -> Score:
    """Scores an extracted answer against the truth.

    Integers, integer parts, numerators, denominators and exponents are aligned at their last digit, decimals at their
    first. In digit match, a missing digit is an error but a surplus one is not (it shows in dlength). If there is no
    answer, no digit is right, and dlength is the number of the truth's digits.

    Args:
        answer: the answer as text, or None if there is none.
        truth: the right answer as text.
        representation: the representation of both.

    Raises ValueError if the texts differ and one does not match the representation's grammar.
    """
    if answer == truth:
        return Score(True, 1.0, 0)
    parts = split_parts(truth, representation)
    digits = sum(map(len, parts))
    if answer is None:
        return Score(False, 0.0, digits)
    matches = dlength = 0
    for given, true, side in zip(split_parts(answer, representation), parts, representation.alignment, strict=True):
        dlength += abs(len(given) - len(true))
        matches += sum(map(eq, given, true) if side == "left" else map(eq, given[::-1], true[::-1]))
    return Score(False, matches / digits, dlength)


WELL_LEARNED = {"exact_match": 0.9, "digit_match": 0.9, "dlength": 0.1}
PERFORMANCE_PRESERVING = {"exact_match": 0.1, "digit_match": 0.5, "dlength": 1.0}
"""Thresholds that a length must pass: at least this exact match or digit match, at most this dlength (A.1.8)."""


def longest_passing(means: Mapping[int, float], metric: str, thresholds: Mapping[str, float]) -> int:
    """The largest length whose mean passes, even if a shorter one fails; 0 if none passes.

    The released statistics are computed in this way.

    Args:
        means: the mean of the metric at each length.
        metric: one of METRICS.
        thresholds: the threshold of each metric.
    """
    return max((length for length, mean in means.items() if _passes(mean, metric, thresholds)), default=0)


def contiguous_passing(means: Mapping[int, float], metric: str, thresholds: Mapping[str, float]) -> int:
    """The largest length up to which every measured length passes; 0 if the shortest fails. See `longest_passing`."""
    longest = 0
    for length in sorted(means):
        if not _passes(means[length], metric, thresholds):
            break
        longest = length
    return longest


def _passes(mean: float, metric: str, thresholds: Mapping[str, float]) -> bool:
    return mean <= thresholds[metric] if metric == "dlength" else mean >= thresholds[metric]
