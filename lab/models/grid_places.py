"""Position ids in two directions: the row of a number in a written calculation, and the place of a digit in the number.

The numbers of running totals (lab/text/running_totals.py) stand in rows below each other. Row k holds what step k reads
and writes: digit k of the second factor or term k of a sum, a part, and a total.

    tokens   <begin>  7  4 <multiply_hard_integer>  3  2  = part  1  4  1 total  1  4  1 part  4  9  0 total  8  0  1
    row            *  *  *                       *  2  3  1    2  2  2  2     2  2  2  2    3  3  3  3     3  3  3  3
    place          *  2  3                       *  *  *  1    1  2  3  4     1  2  3  4    1  2  3  4     1  2  3  4

    tokens   <begin> <sum_integers>  5  2  1 <sum_integers>  7  9 <sum_integers>  3  = total  5  2  1 total  2  2  2
    row            *              2  2  2  2              3  3  3              4  4  1     2  2  2  2     3  3  3  3
    place          *              *  2  3  4              *  2  3              *  2  1     1  2  3  4     1  2  3  4

A token marked * is everywhere in that direction: it is at distance 0 from each token that looks at it. So each row of a
product has all of the first factor nearby, digit by digit, and one digit of the second factor. A token that is
everywhere itself sees only tokens that are everywhere, too. Distances then obey the triangle inequality, and with a
window, what a layer computes does not depend on how many rows and places there are.

The answer of a product runs along two sides of the table: digit k stands in row k, at the ones digit of that row's
total, and after the last row at the further digits of the last total.

An id holds both numbers: row x the number of ids + place, with 0 for everywhere.

Shapes: B rows of a batch, T tokens, Q queries, K keys, V words.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch

from lab.errors import ModelError
from lab.numbers.tasks import SUM
from lab.text.notation import EQUALS
from lab.text.running_totals import PART, RESULT, TOTAL

EVERYWHERE = 0
_FIRST_ROW, _FIRST_PLACE = 2, 2
_UNSEEN = 1_000_000
"""The distance to keys that are somewhere from a query that is everywhere."""
SEGMENTS = 6


@dataclass(frozen=True)
class GridFacts:
    """The ids of the words that structure running totals; -1 for words that a vocabulary lacks."""

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
        if TOTAL not in vocabulary:
            return None
        ids = {word: i for i, word in enumerate(vocabulary)}
        words = (EQUALS, f"<{SUM.key}>", PART, TOTAL, RESULT)
        return cls(*(ids.get(word, -1) for word in words), digits_V=digits_V)


def grid_ids(ids_BT: torch.Tensor, facts: GridFacts, run_BT: torch.Tensor, largest: int) -> torch.Tensor:
    """The ids (B, T) of tokens.

    Args:
        ids_BT: token ids; a row has one problem.
        facts: the facts of the vocabulary.
        run_BT: how many digits of its number stand before each token.
        largest: the number of ids in each direction.
    """
    is_digit_BT = facts.digits_V.to(ids_BT.device)[ids_BT] > 0
    terms_BT, totals_BT = (ids_BT == facts.plus).cumsum(-1), (ids_BT == facts.total).cumsum(-1)
    equals_BT, parts_BT, result_BT = ((ids_BT == word).cumsum(-1) for word in (facts.equals, facts.part, facts.result))
    place_BT = torch.where(is_digit_BT, _FIRST_PLACE + run_BT, 1)

    # the question: terms in rows of their own, or a first factor that is in every row and a second that is in each
    # place; the first factor comes before any operator
    after_operator_BT = _after_first_sign(ids_BT, facts, is_digit_BT)
    is_term_BT = terms_BT > 0
    is_second_BT = ~is_term_BT & after_operator_BT
    asked_row_BT = torch.where(is_term_BT, terms_BT + 1, torch.where(is_second_BT, _FIRST_ROW + run_BT, EVERYWHERE))
    asked_place_BT = torch.where(is_digit_BT & ~is_second_BT, place_BT, EVERYWHERE)
    asked_row_BT = torch.where(is_digit_BT | is_term_BT, asked_row_BT, EVERYWHERE)

    # the steps
    row_BT = 1 + totals_BT + (parts_BT > totals_BT)
    beyond_BT = (run_BT - (totals_BT - 1)).clamp(min=0)
    answer_row_BT = torch.where(is_digit_BT, _FIRST_ROW + run_BT - beyond_BT, 1)
    answer_place_BT = _FIRST_PLACE + torch.where(is_digit_BT, beyond_BT, 0)
    row_BT = torch.where(result_BT > 0, answer_row_BT, row_BT)
    place_BT = torch.where(result_BT > 0, answer_place_BT, place_BT)

    asks_BT = equals_BT == 0
    row_BT, place_BT = torch.where(asks_BT, asked_row_BT, row_BT), torch.where(asks_BT, asked_place_BT, place_BT)
    return row_BT.clamp(max=largest - 1) * largest + place_BT.clamp(max=largest - 1)


def grid_segments(ids_BT: torch.Tensor, facts: GridFacts) -> torch.Tensor:
    """What kind of number each token belongs to, (B, T): 1 a first factor or a term, 2 a second factor, 3 a part, 4 a
    total, 5 an answer; 0 before the first number."""
    is_digit_BT = facts.digits_V.to(ids_BT.device)[ids_BT] > 0
    started_BT = (is_digit_BT | (ids_BT == facts.plus)).cumsum(-1) > 0
    second_BT = _after_first_sign(ids_BT, facts, is_digit_BT) & ((ids_BT == facts.plus).cumsum(-1) == 0)
    kind_BT = started_BT.long() + second_BT
    parts_BT, totals_BT, results_BT = ((ids_BT == word).cumsum(-1) for word in (facts.part, facts.total, facts.result))
    kind_BT = torch.where(totals_BT + parts_BT > 0, torch.where(parts_BT > totals_BT, 3, 4), kind_BT)
    return torch.where(results_BT > 0, 5, kind_BT)


def ahead(positions_BQ: torch.Tensor, positions_BK: torch.Tensor, largest: int) -> torch.Tensor:
    """How far each key is ahead of each query in each direction, (2, B, Q, K): rows, then places.

    0 for a key that is everywhere; very far for other keys of a query that is everywhere.
    """
    directions = []
    for part in (torch.floor_divide, torch.remainder):
        queries_BQ1, keys_B1K = part(positions_BQ, largest)[:, :, None], part(positions_BK, largest)[:, None]
        steps_BQK = torch.where(queries_BQ1 == EVERYWHERE, _UNSEEN, keys_B1K - queries_BQ1)
        directions.append(torch.where(keys_B1K == EVERYWHERE, 0, steps_BQK))
    return torch.stack(directions)


def check_room(digits: int, rows: int, largest: int) -> None:
    """Raises ModelError if numbers of `digits` digits in `rows` rows need more than `largest` ids."""
    needed = max(digits + _FIRST_PLACE, rows + _FIRST_ROW)
    if needed > largest:
        raise ModelError(
            f"{rows} rows of up to {digits} digits do not fit into {largest} ids in each direction: "
            f"model.positions.largest should be at least {needed}"
        )


def _after_first_sign(ids_BT: torch.Tensor, facts: GridFacts, is_digit_BT: torch.Tensor) -> torch.Tensor:
    """Whether a digit comes before each token, and a sign between the two; or the token is that sign."""
    return (~is_digit_BT & (is_digit_BT.cumsum(-1) > 0)).cumsum(-1) > 0
