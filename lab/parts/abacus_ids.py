"""Abacus position ids: 1 + the number of digits before a digit in its run, 0 for other tokens (McLeish et al. 2024,
arXiv 2405.17399). In training, the ids of each problem start at a random place.

Shapes: B rows, T tokens of a row, N problems of a row (or draws for it).
"""

from typing import Any

import numpy as np
import torch
from pydantic import Field

from lab.config.parts import PartConfig, Parts
from lab.errors import ModelError
from lab.parts.coupled_ids import check_through_point
from lab.parts.rows import Rows
from lab.parts.token_facts import NotatedPart, TokenFacts, longest_runs, problem_of, written_before


class AbacusIdsConfig(PartConfig, kind="abacus_ids"):
    """A digit's place in its number is its position id; other tokens have 0 (McLeish et al. 2024)."""

    PRETRAINED, DECIDES = False, True

    largest: int = Field(default=1024, ge=2)
    """How many ids there are."""
    through_point: bool = False
    """See `coupled_ids.through_point`."""

    def check(self, run: Any) -> None:
        if "learned_ids" not in run.parts:
            raise ValueError("parts.abacus_ids gives places, not order: use parts.learned_ids")
        check_through_point(self, run, "total")
        run.format.check_that_places_agree("parts.abacus_ids")

    def build(self, model: Any, others: Parts) -> "AbacusIds":
        return AbacusIds(self)


class AbacusIds(NotatedPart):
    def position_ids(self, rows: Rows) -> torch.Tensor:
        """Raises ModelError if a run of a training batch has more digits than there are ids."""
        tokens, starts_BN = rows.tokens_RT, None
        facts = self.facts(tokens.device)
        if rows.generator is not None:
            starts_BN = draw_starts(longest_runs(tokens, facts), self.config.largest, rows.generator)
        return rows.of_queries(abacus(tokens, facts, starts_BN))


def abacus(ids_BT: torch.Tensor, facts: TokenFacts, starts_BN: torch.Tensor | None = None) -> torch.Tensor:
    """1 + the number of digits before it in the same run, plus the problem's start if given; 0 for other tokens."""
    places_BT = 1 + written_before(ids_BT, facts)
    if starts_BN is not None:
        places_BT = places_BT + starts_BN.gather(1, problem_of(ids_BT, facts))
    return places_BT * (facts.digits[ids_BT] > 0)


def draw_starts(runs_BN: torch.Tensor, largest: int, generator: np.random.Generator) -> torch.Tensor:
    """For each problem, a start (B, N) of its abacus ids, uniform among those that keep all its ids below `largest`.

    Raises ModelError if a run has more digits than there are ids.
    """
    longest = int(runs_BN.max())
    if longest >= largest:
        raise ModelError(
            f"a number of {longest} digits does not fit into abacus ids below {largest}: "
            f"parts.abacus_ids.largest should be at least {longest + 1}"
        )
    return torch.from_numpy(generator.integers(0, largest - runs_BN.numpy()))
