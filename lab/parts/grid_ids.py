"""Position ids in two directions: the row of a number in a written calculation, and the place of a digit in the number.

The numbers of running totals (lab/text/running_totals.py) are arranged in rows, one below the other. Row k + 1 holds
what belongs to step k: its digit of the second factor (or, in a sum, its term), its part and its total.

    tokens   <begin>  7  4 <multiply_hard_integer>  3  2  = part  1  4  1 total  1  4  1 part  4  9  0 total  8  0  1
    row            *  *  *                       *  2  3  1    2  2  2  2     2  2  2  2    3  3  3  3     3  3  3  3
    place          *  2  3                       *  *  *  1    1  2  3  4     1  2  3  4    1  2  3  4     1  2  3  4

    tokens   <begin> <sum_integers>  5  2  1 <sum_integers>  7  9 <sum_integers>  3  = total  5  2  1 total  2  2  2
    row            *              2  2  2  2              3  3  3              4  4  1     2  2  2  2     3  3  3  3
    place          *              *  2  3  4              *  2  3              *  2  1     1  2  3  4     1  2  3  4

* means everywhere: in that direction, the token is at distance 0 from every token that looks at it, so each row of a
product sees the whole first factor and its own digit of the second. When the token itself looks in that direction, it
is at distance 0 only from other such tokens, and very far from the rest. This keeps the triangle inequality true, so
that window x layers bounds what a token depends on, however many rows and places there are.

The answer of a product follows two sides of the table: down the ones digits of the totals, then along the last total.

An id holds both numbers: row x 65,536 + place, with 0 for everywhere.

Shapes: B rows of a batch, T tokens, Q queries, K keys, V words.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import torch

from lab.config.parts import PartConfig, Parts
from lab.errors import ModelError
from lab.numbers.tasks import SUM
from lab.parts.positions import Positions
from lab.parts.rows import Rows, Words
from lab.parts.token_facts import NotatedPart, written_before
from lab.text.notation import EQUALS
from lab.text.running_totals import PART, RESULT, TOTAL

EVERYWHERE = 0
_FIRST_ROW, _FIRST_PLACE = 2, 2
"""The row of the first step, and the place of the ones digit. 1 is the row of "=" and of "answer", and the place of
other signs."""
_ROW = 2**16
"""The difference between the ids of two rows: more than a number has places."""
_UNSEEN = 1_000_000
"""The distance from a query that is everywhere to a key that is not."""
SEGMENTS = 6


class GridIdsConfig(PartConfig, kind="grid_ids"):
    """The row and the place of a digit in running totals (data.style=running_totals)."""

    PRETRAINED, DECIDES, DIRECTIONS = False, True, 2

    def check(self, run: Any) -> None:
        if run.data.style != "running_totals":
            raise ValueError("parts.grid_ids needs data.style=running_totals")
        if "relative_keys" not in run.parts or "stick_breaking" in run.parts:
            raise ValueError("parts.grid_ids has two directions: it needs parts.relative_keys and no stick_breaking")

    def build(self, model: Any, others: Parts) -> "GridIds":
        return GridIds(self)


class GridIds(NotatedPart):
    def read(self, words: Words, reverse: str) -> None:
        super().read(words, reverse)
        self._grid = GridFacts.of(words.vocabulary, self.facts(torch.device("cpu")).digits)
        if self._grid is None:
            raise ModelError("parts.grid_ids needs data.style=running_totals: the vocabulary has no totals")

    def position_ids(self, rows: Rows) -> torch.Tensor:
        tokens = rows.tokens_RT
        assert self._grid is not None
        return rows.of_queries(grid_ids(tokens, self._grid, written_before(tokens, self.facts(tokens.device))))

    def positions(self, ids_BQ: torch.Tensor, ids_BK: torch.Tensor) -> Positions:
        return Positions(ids_BQ, ids_BK, list(ahead(ids_BQ, ids_BK)))


@dataclass(frozen=True)
class GridFacts:
    """The ids of the words that structure running totals; -1 for the operator of sums if a vocabulary lacks it."""

    equals: int
    plus: int
    part: int
    total: int
    result: int
    digits_V: torch.Tensor
    """How many digits each word has."""

    @classmethod
    def of(cls, vocabulary: Sequence[str], digits_V: torch.Tensor) -> Self | None:
        """The facts of a vocabulary; None if it has no running totals."""
        if not {PART, TOTAL, RESULT} <= set(vocabulary):  # rules may have a variable of one of these names
            return None
        ids = {word: i for i, word in enumerate(vocabulary)}
        words = (EQUALS, f"<{SUM.key}>", PART, TOTAL, RESULT)
        return cls(*(ids.get(word, -1) for word in words), digits_V=digits_V)


def grid_ids(ids_BT: torch.Tensor, facts: GridFacts, run_BT: torch.Tensor) -> torch.Tensor:
    """The ids (B, T) of tokens.

    Args:
        ids_BT: token ids; a row has one problem.
        facts: the facts of the vocabulary.
        run_BT: how many digits of its number stand before each token.
    """
    seen = _seen(ids_BT, facts)
    place_BT = torch.where(seen.is_digit, _FIRST_PLACE + run_BT, 1)

    # the question: each term of a sum has its own row; a first factor is in every row, a second factor at every place
    is_term_BT, is_second_BT = seen.terms > 0, seen.is_second
    asked_row_BT = torch.where(is_second_BT, _FIRST_ROW + run_BT, EVERYWHERE)
    asked_row_BT = torch.where(is_term_BT, seen.terms + 1, torch.where(seen.is_digit, asked_row_BT, EVERYWHERE))
    asked_place_BT = torch.where(seen.is_digit & ~is_second_BT, place_BT, EVERYWHERE)

    # the steps
    row_BT = 1 + seen.totals + (seen.parts > seen.totals)
    beyond_BT = (run_BT - (seen.totals - 1)).clamp(min=0)
    answer_row_BT = torch.where(seen.is_digit, _FIRST_ROW + run_BT - beyond_BT, 1)
    answer_place_BT = _FIRST_PLACE + torch.where(seen.is_digit, beyond_BT, 0)
    row_BT = torch.where(seen.results > 0, answer_row_BT, row_BT)
    place_BT = torch.where(seen.results > 0, answer_place_BT, place_BT)

    asks_BT = (ids_BT == facts.equals).cumsum(-1) == 0
    row_BT, place_BT = torch.where(asks_BT, asked_row_BT, row_BT), torch.where(asks_BT, asked_place_BT, place_BT)
    return row_BT * _ROW + place_BT


def rows_and_places(positions: torch.Tensor) -> torch.Tensor:
    """The row of each id and then its place, in a new first dimension of size 2."""
    return torch.stack([positions // _ROW, positions % _ROW])


def grid_segments(ids_BT: torch.Tensor, facts: GridFacts) -> torch.Tensor:
    """What kind of number each token belongs to, (B, T): 1 a first factor or a term, 2 a second factor, 3 a part, 4 a
    total, 5 an answer; 0 before the first number. <end> belongs to the number before it."""
    seen = _seen(ids_BT, facts)
    started_BT = (seen.is_digit.cumsum(-1) + seen.terms) > 0
    kind_BT = started_BT.long() + seen.is_second
    kind_BT = torch.where(seen.totals + seen.parts > 0, torch.where(seen.parts > seen.totals, 3, 4), kind_BT)
    return torch.where(seen.results > 0, 5, kind_BT)


def ahead(positions_BQ: torch.Tensor, positions_BK: torch.Tensor) -> torch.Tensor:
    """How far each key is ahead of each query in each direction, (2, B, Q, K): rows, then places.

    0 for a key that is everywhere; very far for other keys of a query that is everywhere.
    """
    queries_2BQ1, keys_2B1K = rows_and_places(positions_BQ)[..., None], rows_and_places(positions_BK)[:, :, None]
    steps_2BQK = torch.where(queries_2BQ1 == EVERYWHERE, _UNSEEN, keys_2B1K - queries_2BQ1)
    return torch.where(keys_2B1K == EVERYWHERE, 0, steps_2BQK)


class _Seen(NamedTuple):
    """What each token is, and how many of each sign a row has had up to it; all are (B, T)."""

    is_digit: torch.Tensor
    is_second: torch.Tensor
    """Whether a token of a product comes after the first factor, or is the sign that ends it."""
    terms: torch.Tensor
    parts: torch.Tensor
    totals: torch.Tensor
    results: torch.Tensor


def _seen(ids_BT: torch.Tensor, facts: GridFacts) -> _Seen:
    is_digit_BT = facts.digits_V.to(ids_BT.device)[ids_BT] > 0
    signs = facts.plus, facts.part, facts.total, facts.result
    terms_BT, *steps = ((ids_BT == sign).cumsum(-1) for sign in signs)
    after_digits_BT = (~is_digit_BT & (is_digit_BT.cumsum(-1) > 0)).cumsum(-1) > 0
    return _Seen(is_digit_BT, after_digits_BT & (terms_BT == 0), terms_BT, *steps)
