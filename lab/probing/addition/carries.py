"""The contrast of two additions whose carries into one column differ: which digit is read, and the roles of tokens.

Shapes: B rows (each pair in both directions), K columns.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from lab.errors import TaskError
from lab.probing.addition.positions import Sums
from lab.probing.contrast import NOWHERE, Contrast, both_ways

CARRY_DIRECTIONS = ("0 to 1", "1 to 0")
"""The direction of the carry into column k, from the base to the source."""
PLACES = ("a_k", "a_k-1", "b_k", "b_k-1", "operator", "equals", "q_k-1", "q_k")
"""Names of tokens by their role for column k. The first digit of an answer is predicted at "equals"."""
_LAYOUT = ("a_at_BK", "b_at_BK", "answer_at_BK", "operator_at_B", "equals_at_B")
Numbers = Sequence[tuple[int, int]]


@dataclass(frozen=True, eq=False, kw_only=True)
class SumContrast(Contrast):
    """Additions that differ in the carry into a column."""

    base: Sums
    source: Sums
    subject: Any
    column: int
    """The column k whose digit is read."""

    def donors(self, numbers: Numbers) -> Sums:
        """Other sums, one for each row, whose activations can be patched into the bases' runs.

        Raises TaskError unless each has its digits at the same tokens as its base.
        """
        found = self.subject.sums(numbers)
        if not _same_layout(self.base, found):
            raise TaskError("donors and bases have their digits at different tokens; all lengths should be the same")
        return replace(found, tokens_BT=found.tokens_BT[:, : self.base.tokens_BT.shape[1]])


def donor(of: Callable[[Numbers], Numbers]) -> Callable[[Contrast], Sums]:
    """A donor for `patching.patch` from a function of the bases' numbers, such as `pairs.same_carry`."""

    def found(contrast: Contrast) -> Sums:
        assert isinstance(contrast, SumContrast)
        return contrast.donors(of(contrast.base.numbers))

    return found


def carry_contrast(subject: Any, base: Numbers, source: Numbers, column: int) -> SumContrast:
    """The contrast of some pairs of additions, in both directions.

    Raises TaskError unless base and source have their digits at the same tokens and differ in the carry into the
    column, and ModelError for a tokenizer that puts several digits in a token.
    """
    bases, sources = subject.sums([*base, *source]), subject.sums([*source, *base])
    if column >= bases.query_at_BK.shape[1] or (bases.query_at_BK[:, column] == NOWHERE).any():
        raise TaskError(f"column {column}: some of the pairs have no such digit in their answers")
    if not _same_layout(bases, sources):
        raise TaskError("base and source have their digits at different tokens; all lengths should be the same")
    carries_B = bases.columns.carry[:, column]
    if (same := np.flatnonzero(carries_B == sources.columns.carry[:, column])).size:
        row = same[0]
        raise TaskError(f"{bases.numbers[row]} and {sources.numbers[row]} have the same carry into column {column}")
    bases.check_digits()
    ids = torch.tensor(subject.writer.digit_ids())
    base_id_B, source_id_B = (ids[torch.from_numpy(sums.columns.sum[:, column])] for sums in (bases, sources))
    pair_B, _ = both_ways(len(base))
    return SumContrast(
        base=bases, source=sources, subject=subject, column=column, query_at_BQ=bases.query_at_BK[:, column, None],
        base_id_BQ=base_id_B[:, None], source_id_BQ=source_id_B[:, None], roles=_roles(bases, column), pair_B=pair_B,
        direction_B=carries_B, axis="carry", directions=CARRY_DIRECTIONS,
    )  # fmt: skip


def _same_layout(one: Sums, other: Sums) -> bool:
    return all(getattr(one, name).equal(getattr(other, name)) for name in _LAYOUT)


def _roles(sums: Sums, k: int) -> dict[str, torch.Tensor]:
    """The tokens of each of PLACES, (B, T); a role that no sum has is left out."""
    named = {"a": sums.a_at_BK, "b": sums.b_at_BK, "q": sums.query_at_BK}
    tokens_T, found = torch.arange(sums.tokens_BT.shape[1]), {}
    for place in PLACES:
        name, _, offset = place.partition("_k")
        column = k + int(offset or 0)
        if name in named:
            at_B = named[name][:, column] if column >= 0 else torch.full((len(sums),), NOWHERE)
        else:
            at_B = sums.operator_at_B if name == "operator" else sums.equals_at_B
        found[place] = tokens_T == at_B[:, None]
    return {place: has_BT for place, has_BT in found.items() if has_BT.any()}
