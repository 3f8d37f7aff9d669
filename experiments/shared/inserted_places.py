"""A short sum as a model would see it if it were longer.

`inserted(model, Insertion(3))` inserts three places into every row that the model reads, but only as attention sees
them. Take a query in the upper half of a number. Everything that lies at least FAR places below it moves down, and each
place of the gap holds an average digit:

    a number             7 6 5 4 3 2 1 0             the query writes the digit of place 7
    as it is seen        7 6 5 4 x x x 3 2 1 0       x: in expectation over 7 6 5 4 3 2 1 0

A query in the lower half has its gap above. This shows, without a longer sum, what more digits and new distances do to
attention. Signs lie below the numbers and move with everything that is beyond the gap. An inserted digit is an average:
each of the m visible digits of its number contributes 1/m of the weight that it would have at that distance, with its
value vector. Numbers that are shorter than the longest number get no gap, because they would stay short in longer sums.

This works for coupled ids and one problem in each row, with any parts except learned ids, whose vectors are part of
the keys and values of digits.

Shapes: B rows (one), H heads, Q queries and K keys (the tokens of a row), D width of a head, P places at once, N
numbers.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch.nn.functional import one_hot

from experiments.shared.attention_scores import Scores, rescored
from lab.errors import ModelError
from lab.parts.positions import Positions
from lab.parts.relative_keys import FAR
from lab.parts.segments import segments
from lab.parts.token_facts import TokenFacts
from lab.scratch.llama import NumberLlama

_AT_ONCE = 64
"""Inserted places whose scores are computed together."""
_NUMBERS = 3
"""The numbers of a row: two operands and the answer."""


class Insertion(NamedTuple):
    """What is inserted. By default, everything changes that would be different in longer sums."""

    places: int
    more: bool = True
    """Whether there are digits in the gap."""
    farther: bool = True
    """Whether digits are farther away: those beyond the gap move, and those in the gap are at distances of their own.
    Otherwise, digits stay where they are, and those in the gap are in turn at all distances of at least FAR that occur
    in the row."""
    signs: bool = True
    """Whether signs move."""


@contextmanager
def inserted(model: NumberLlama, insertion: Insertion) -> Iterator[None]:
    """Within this context, the model attends as if places were inserted in each row; it reads one row at a time.

    Raises ModelError for learned ids.
    """
    if "learned_ids" in model.parts:
        raise ModelError("places cannot be inserted if ids are learned: they are part of what digits bring")

    def rescore(scores: Scores, ids_BK: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return _with_places(scores, Row.of(model, ids_BK), insertion, visible_BQK=(mask > float("-inf"))[:, 0])

    with rescored(model, rescore):
        yield


class Row:
    """The tokens of a forward pass: where they stand, and to which numbers they belong."""

    def __init__(self, positions_BK: torch.Tensor, number_BK: torch.Tensor) -> None:
        """
        Args:
            positions_BK: position ids; 0 for signs, 1 for the ones digit.
            number_BK: 0 and 1 for the digits of the operands, 2 for those of the answer, -1 for signs.
        """
        self.positions_BK, self.number_BK = positions_BK, number_BK
        self.highest = int(positions_BK[number_BK >= 0].max())
        self.is_digit_BKN = one_hot(number_BK + 1, _NUMBERS + 1)[..., 1:]
        digits_BN = self.is_digit_BKN.sum(1)
        self.has_gap_BN = digits_BN >= digits_BN[:, :-1].amax(-1, keepdim=True)
        self.has_gap_BN[:, -1] = True  # the part of the answer that is written is as long as in longer sums
        self.is_short_BK = (self.is_digit_BKN * ~self.has_gap_BN[:, None]).any(-1)
        """The digits of numbers without a gap, all of which are below it."""
        self.upper_BK = (2 * positions_BK > self.highest) & ~self.is_short_BK
        """Whether a token, as a query, has its gap below it, not above."""

    @classmethod
    def of(cls, model: NumberLlama, ids_BK: torch.Tensor) -> "Row":
        facts = TokenFacts.of(model.config.vocabulary).to(ids_BK.device)
        number_BK = segments(ids_BK, facts) - 1
        return cls(model.positions(ids_BK), torch.where(facts.digits[ids_BK] > 0, number_BK, -1))

    def ahead(self) -> torch.Tensor:
        """How many ids a key is above a query, (B, Q, K)."""
        return Positions.of(self.positions_BK, self.positions_BK).ahead[0]

    def moved(self, insertion: Insertion) -> torch.Tensor:
        """How far each key moves, as each query sees it, (B, Q, K)."""
        ahead_BQK = self.ahead()
        is_sign_BQK, is_upper_BQK = (self.number_BK < 0)[:, None], self.upper_BK[..., None]
        is_moved_BQK = torch.where(is_sign_BQK, insertion.signs, insertion.farther)
        is_low_BQK = (ahead_BQK <= -FAR) | is_sign_BQK | self.is_short_BK[:, None]
        below_BQK = is_moved_BQK & is_upper_BQK & is_low_BQK
        above_BQK = is_moved_BQK & ~is_upper_BQK & (ahead_BQK >= FAR) & ~is_sign_BQK & ~self.is_short_BK[:, None]
        return insertion.places * (above_BQK.long() - below_BQK.long())

    def averaged(self, visible_BQK: torch.Tensor) -> torch.Tensor:
        """The share of each key in an inserted digit of its number, (B, Q, K); 0 in numbers without a gap. These are
        short numbers, and the query's own number if the gap is above it, where nothing has been read or written yet."""
        own_BQN = self.is_digit_BKN.bool() & ~self.upper_BK[..., None]
        gap_BQN = self.has_gap_BN[:, None] & ~own_BQN
        number_BQKN = self.is_digit_BKN[:, None] * visible_BQK[..., None] * gap_BQN[:, :, None]
        return (number_BQKN / number_BQKN.sum(2, keepdim=True).clamp(min=1)).sum(-1)


def _with_places(scores: Scores, row: Row, insertion: Insertion, visible_BQK: torch.Tensor) -> torch.Tensor:
    """The scores (1, H, Q, K) of keys, each with its share of the digits in the gap."""
    at, places = row.positions_BK, insertion.places
    scores_BHQK = scores.at(at, at)
    if places:
        moved_BQK = row.moved(insertion)
        for step in (-places, places):
            scores_BHQK = torch.where((moved_BQK == step)[:, None], scores.at(at, at + step), scores_BHQK)
    if places and insertion.more:
        together_BHQK = _in_the_gap(scores, row, insertion) + row.averaged(visible_BQK).log()[:, None]
        scores_BHQK = torch.logaddexp(scores_BHQK, together_BHQK)
    return scores_BHQK.masked_fill(~visible_BQK[:, None], float("-inf"))


def _in_the_gap(scores: Scores, row: Row, insertion: Insertion) -> torch.Tensor:
    """The logarithm of what a key would weigh at all places of the gap together, (1, H, Q, K)."""
    direction_1Q = torch.where(row.upper_BK, 1, -1)
    beyond = torch.arange(insertion.places)
    if not insertion.farther:
        beyond = beyond % max(1, row.highest - FAR)
    parts = []
    for distances_P in (FAR + beyond).split(_AT_ONCE):
        positions_PQ = distances_P[:, None] * direction_1Q
        parts.append(scores.at(positions_PQ, torch.zeros_like(positions_PQ)).logsumexp(0, keepdim=True))
    return torch.cat(parts).logsumexp(0, keepdim=True)
