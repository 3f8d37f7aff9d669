"""Places of the words of a trace (lab/text/rule_notation.py): the line of the rule's loop, and the column in the line.

A loop that handles one digit per pass handles place p in line p. So a word of line p has the coupled id of digits of
place p, and a model finds the digits that a line needs at the id of the line itself:

    tokens    <begin>  8  2 <add>  5  =  8  5  3  1  ;  2 ""  3  0  ; answer is  3  3 <end>      28 + 5 = 33
    coupled         0  1  2     0  1  0  1  1  1  1  1  2  2  2  2  2      3  0  1  2     3      offset 0
    segments        0  1  1     2  2  3  4  5  6  7  3  4  5  6  7  3      4 15 15 15     0

Lines are counted from the latest "=", or from the latest word with which a function begins if that comes later. The
line after "=" has the number 1; the line in which a function begins has 0. Digits in quotes have the places of a number
of their own. Segments tell the columns of a line apart: 3 for the word before the line, 4 for its first word, and so on
up to 14; digits in quotes do not advance the column. The answer has 15.

Like those of numbers, these ids are causal: they follow from the tokens up to each word.

Shapes: B rows, T tokens, V words.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from lab.text.rule_notation import ANSWER, LINE

FIRST_COLUMN, LAST_COLUMN, ANSWERED = 3, 14, 15
SEGMENTS = 16


@dataclass(frozen=True)
class TraceFacts:
    """The words of a vocabulary that structure a trace."""

    line: int
    """The id of the word that ends a line."""
    answer: int
    """The id of the word between a trace and its answer."""
    quote: int
    """The id of the quotation mark; -1 if the vocabulary has none."""
    equals: int
    enters_V: torch.Tensor
    """Whether a function begins with each word."""
    digits_V: torch.Tensor
    """How many digits each word has."""

    @classmethod
    def of(cls, vocabulary: Sequence[str], equals: int, digits_V: torch.Tensor) -> "TraceFacts | None":
        """The facts of a vocabulary; None if it has no traces."""
        ids = {word: i for i, word in enumerate(vocabulary)}
        if LINE not in ids or ANSWER not in ids:
            return None
        enters = [len(word) > 1 and word.endswith(":") for word in vocabulary]
        enters_V = torch.tensor(enters, device="cpu")
        return cls(ids[LINE], ids[ANSWER], ids.get('"', -1), equals, enters_V, digits_V)

    def in_trace(self, ids_BT: torch.Tensor) -> torch.Tensor:
        """Whether a word is part of a trace: after the latest "=" that ends a question, and before the answer."""
        equals_BT, answer_BT = latest(ids_BT == self.equals), latest(ids_BT == self.answer)
        return (equals_BT >= 0) & (answer_BT < equals_BT) & (ids_BT != self.equals)

    def in_number(self, ids_BT: torch.Tensor) -> torch.Tensor:
        """Whether a word is a digit in quotes."""
        quotes_BT = (ids_BT == self.quote).cumsum(-1)
        since_BT = quotes_BT - _at_latest(quotes_BT, (ids_BT == self.line) | (ids_BT == self.equals))
        return (since_BT % 2 == 1) & (self.digits_V.to(ids_BT.device)[ids_BT] > 0)

    def lines(self, ids_BT: torch.Tensor) -> torch.Tensor:
        """The coupled id of each word's line, before any offset."""
        is_line_BT = ids_BT == self.line
        before_BT = is_line_BT.cumsum(-1) - is_line_BT.long()
        enters_BT = self.enters_V.to(ids_BT.device)[ids_BT]
        starts_BT = enters_BT | (ids_BT == self.equals)
        first_BT = (latest(ids_BT == self.equals) > latest(enters_BT)).long()
        return before_BT - _at_latest(before_BT, starts_BT) + first_BT

    def columns(self, ids_BT: torch.Tensor) -> torch.Tensor:
        """The segment of each word of a trace or an answer."""
        counted_BT = (~self.in_number(ids_BT)).cumsum(-1)
        starts_BT = (ids_BT == self.line) | (ids_BT == self.equals)
        columns_BT = counted_BT - _at_latest(counted_BT, starts_BT) + FIRST_COLUMN
        answered_BT = latest(ids_BT == self.answer) > latest(ids_BT == self.equals)
        return torch.where(answered_BT, ANSWERED, columns_BT.clamp(max=LAST_COLUMN))


def latest(is_BT: torch.Tensor) -> torch.Tensor:
    """The index of the latest True up to each token, or -1 if there is none."""
    places_T = torch.arange(is_BT.shape[1], device=is_BT.device)
    return torch.where(is_BT, places_T, -1).cummax(-1).values


def _at_latest(counts_BT: torch.Tensor, is_BT: torch.Tensor) -> torch.Tensor:
    """What a count was at the latest True up to each token; 0 if there is none."""
    latest_BT = latest(is_BT)
    return torch.where(latest_BT >= 0, counts_BT.gather(1, latest_BT.clamp(min=0)), 0)
