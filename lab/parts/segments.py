"""A learned vector for the number that a token belongs to, which is added to its embedding.

    tokens       <begin>  5  2  1 <add_integer>  7  9  =  2  2  2 <end>
    segments           0  1  1  1             2  2  2  3  3  3  3     0

Shapes: B rows, T tokens of a row, D width of the model.
"""

from typing import Any

import torch
from torch import nn

from lab.config.parts import PartConfig, Parts
from lab.parts import grid_ids, trace_places
from lab.parts.grid_ids import GridFacts, grid_segments
from lab.parts.part import Inputs
from lab.parts.rows import Rows, Words
from lab.parts.token_facts import NotatedPart, TokenFacts
from lab.parts.trace_places import latest

_SEGMENTS = 4
"""The number of segments if there are no traces and no running totals."""


class SegmentsConfig(PartConfig, kind="segments"):
    """A learned embedding says which number a token belongs to: first, second, or answer; in running totals, also a
    part or a total."""

    PRETRAINED = False

    def build(self, model: Any, others: Parts) -> "Segments":
        facts = TokenFacts.of(model.vocabulary)
        grid = GridFacts.of(model.vocabulary, facts.digits)
        count = trace_places.SEGMENTS if facts.trace else grid_ids.SEGMENTS if grid else _SEGMENTS
        return Segments(self, count, model.hidden_size)


class Segments(NotatedPart):
    def __init__(self, config: SegmentsConfig, count: int, width: int) -> None:
        super().__init__(config)
        self.vectors = nn.Embedding(count, width)
        self._grid: GridFacts | None = None

    def read(self, words: Words, reverse: str) -> None:
        super().read(words, reverse)
        self._grid = GridFacts.of(words.vocabulary, self.facts(torch.device("cpu")).digits)

    def inputs(self, rows: Rows) -> dict[str, torch.Tensor]:
        """segments_BQ."""
        return {"segments_BQ": rows.of_queries(self.of(rows.tokens_RT))}

    def of(self, ids_BT: torch.Tensor) -> torch.Tensor:
        """The segments of whole rows of tokens, (B, T)."""
        if self._grid:
            return grid_segments(ids_BT, self._grid)
        return segments(ids_BT, self.facts(ids_BT.device))

    def embedded(self, hidden_BQD: torch.Tensor, inputs: Inputs, ids_BQ: torch.Tensor) -> torch.Tensor:
        return hidden_BQD + self.vectors(inputs["segments_BQ"])


def segments(ids_BT: torch.Tensor, facts: TokenFacts) -> torch.Tensor:
    """1 in the first number, 2 from the operator on, 3 from "=" on; 0 for <begin>, from <end> on, and in padding.

    The operator and "=" belong to the number after them, because they predict its first digit. In traces, the words of
    a line have different segments (`trace_places`).
    """
    begin_BT = latest(ids_BT == facts.begin)
    operator_BT, equals_BT, end_BT = (
        latest(is_BT) > begin_BT for is_BT in (facts.is_operator[ids_BT], ids_BT == facts.equals, ids_BT == facts.end)
    )
    number_BT = torch.where(
        equals_BT, 3 if facts.trace is None else facts.trace.columns(ids_BT), 1 + operator_BT.long()
    )
    return number_BT * ~(end_BT | (ids_BT == facts.begin) | (ids_BT == facts.pad))
