"""Coupled position ids: digits of the same place share one id (Cho et al. 2024, arXiv 2405.20671).

If numbers are written least significant digit first, counting the digits of a run gives the place of each digit:

    tokens       <begin>  5  2  1 <add_integer>  7  9  =  2  2  2 <end>       125 + 97 = 222
    coupled            0  1  2  3             0  1  2  0  1  2  3     4       offset 0

Tokens between runs have id 0; a hint has the id of the digit after it. Then all ids of a problem except that of <begin>
are shifted and taken modulo `largest`; in training, the shift is drawn for each problem. If a row has several problems,
each has its own window of ids. The id of a token does not depend on later tokens, so it stays the same while a row is
generated. With `through_point`, the point has the id of the digit before it, and does not end a run:

    tokens       <begin>  5  2  .  1 <add_float>  5  7  .  0  =  0  0  .  2 <end>       1.25 + 0.75 = 2.00
    coupled            0  1  2  2  3           0  1  2  2  3  0  1  2  2  3     4       offset 0

Shapes: B rows, T tokens of a row, N problems of a row (or draws for it).
"""

from typing import Any

import torch
from pydantic import Field

from lab.config.parts import PartConfig, Parts
from lab.parts.positions import Positions
from lab.parts.rows import Rows
from lab.parts.token_facts import NotatedPart, TokenFacts, draw_offsets, longest_runs, shifted, written_before


class CircleConfig(PartConfig):
    """Ids that start anywhere and wrap around."""

    PRETRAINED, DECIDES = False, True

    largest: int = Field(default=1024, ge=2)
    """How many ids there are. They start at any of them and wrap around."""
    through_point: bool = False
    """Let ids continue across a number's point, so that decimals and the digits of the integer part have different ids.
    So that a place has the same id in all three numbers, this needs format.pad=all and, unless ids count down,
    format.reverse=total."""

    def check(self, run: Any) -> None:
        check_through_point(self, run, "total")


def check_through_point(config: Any, run: Any, reverse: str) -> None:
    """Raises ValueError for a config with `through_point` if numbers are not written in this order, padded to the same
    length."""
    if config.through_point and (run.format.reverse, run.format.pad) != (reverse, "all"):
        what = (
            f"parts.{config.KIND}.through_point counts decimals and integer part as one number, starting from its end"
        )
        raise ValueError(f"{what}: use format.reverse={reverse} and format.pad=all")


class CoupledIdsConfig(CircleConfig, kind="coupled_ids"):
    """Digits of the same place share one position id, and so do the operator and "=" (Cho et al. 2024)."""

    def check(self, run: Any) -> None:
        super().check(run)
        run.format.check_that_places_agree("parts.coupled_ids")

    def build(self, model: Any, others: Parts) -> "CoupledIds":
        return CoupledIds(self)


class CircleIds(NotatedPart):
    """Ids that are drawn in training, and that wrap around."""

    def ids(self, ids_BT: torch.Tensor, facts: TokenFacts) -> torch.Tensor:
        """The ids (B, T) before they are shifted."""
        raise NotImplementedError

    def spans(self, ids_BT: torch.Tensor, facts: TokenFacts) -> torch.Tensor:
        """How many ids each problem needs, (B, N)."""
        raise NotImplementedError

    def position_ids(self, rows: Rows) -> torch.Tensor:
        """Raises ModelError if rows of a training batch are too long for `largest`, or have too many problems."""
        tokens, largest, offsets_BN = rows.tokens_RT, self.config.largest, None
        facts = self.facts(tokens.device)
        if rows.generator is not None:
            offsets_BN = draw_offsets(self.spans(tokens, facts), largest, rows.generator, self.config.KIND)
        return rows.of_queries(shifted(self.ids(tokens, facts), tokens, facts, largest, offsets_BN))

    def positions(self, ids_BQ: torch.Tensor, ids_BK: torch.Tensor) -> Positions:
        return Positions.of(ids_BQ, ids_BK, self.config.largest)

    @property
    def most_digits(self) -> int:
        return self.config.largest - 2


class CoupledIds(CircleIds):
    def ids(self, ids_BT: torch.Tensor, facts: TokenFacts) -> torch.Tensor:
        """Words of traces have the ids of their lines (`trace_places`)."""
        ids = written_before(ids_BT, facts) + facts.has_place[ids_BT]
        if trace := facts.trace:
            is_lined_BT = trace.in_trace(ids_BT) & ~trace.in_number(ids_BT)
            ids = torch.where(is_lined_BT, trace.lines(ids_BT), ids)
        return ids

    def spans(self, ids_BT: torch.Tensor, facts: TokenFacts) -> torch.Tensor:
        # one id before the digits, for tokens between runs, and one after them, for <end>
        return longest_runs(ids_BT, facts) + 2
