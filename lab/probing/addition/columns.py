"""The contrast of sums with other sums: which digit is read in each column, and that of a sum that has nothing to do
with it as the control. Lenses take it.

Shapes: B rows (each pair in both directions), K columns.
"""

from typing import Any, NamedTuple

import numpy as np
import torch

from lab.probing.addition.positions import Sums
from lab.probing.contrast import NOWHERE, Contrast, both_ways


class ColumnPairs(NamedTuple):
    """Sums, each with the digits of another one as the control."""

    sums: Sums

    def contrast(self, subject: Any) -> Contrast:
        """A query for each column. Raises ModelError for a model that writes several digits in a token."""
        token_of_digit = torch.tensor(subject.writer.digit_ids())
        count = len(self.sums)
        shift = int(np.random.default_rng(0).integers(1, max(2, count)))
        own, other = list(range(count)), np.roll(np.arange(count), shift).tolist()
        bases, sources = self.sums.part([*own, *other]), self.sums.part([*other, *own])
        base_id_BK, source_id_BK = (
            torch.where(
                side.has_digit_BK & bases.has_digit_BK, token_of_digit[torch.from_numpy(side.columns.sum)], NOWHERE
            )
            for side in (bases, sources)
        )
        pair_B, direction_B = both_ways(count)
        return Contrast(
            base=bases, source=sources, query_at_BQ=bases.query_at_BK, base_id_BQ=base_id_BK, source_id_BQ=source_id_BK,
            roles={}, pair_B=pair_B, direction_B=direction_B, query_axis="column", alphabet=token_of_digit.tolist(),
        )  # fmt: skip
