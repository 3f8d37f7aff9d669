"""Equal distances between numbers in attention to digits, however many words stand between them.

    4321 geese came in the rainy spring and 98 in autumn : 32
    0    1     2    3  4   5     6      7   8  9  10    11 12     ids in the text (`coupled`)
    3    6     6    6  6   6     6      6   6  9  9      9  9     even ids with a spacing of 3

Each token has two ids. Attention to words uses the ids in the text; attention to digits uses the even ids, both of the
query and of the digit. So the distance at which a digit is seen depends neither on the words between the numbers nor on
how long the numbers are. Words have the even id of the next number, because the last of them writes its first digit.

RoPE rotates the key of a digit by its even id, and that of a word by its id in the text. A query is rotated like a key
at first, and then turned to each of its two ids; which of the two versions counts depends on the key.

Shapes: B rows, Q queries, K keys, H heads, G key-value heads, D width of a head.
"""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from pydantic import Field

from lab.config.parts import PartConfig, Parts
from lab.errors import ModelError
from lab.parts.coupled import text_positions
from lab.parts.part import Act, Inputs, Part, Step
from lab.parts.rows import Rows, Words
from lab.text.places import RowSpots

Rotation: TypeAlias = tuple[torch.Tensor, torch.Tensor]
"""Cosines and sines of the angles of each query, (B, Q, D)."""
ROPE_THAT_CHANGES = ("dynamic", "longrope")
"""Kinds of RoPE whose angles depend on the largest id of a forward pass, so that a rotation cannot be continued."""


class SpacedIds(NamedTuple):
    positions_Q: np.ndarray
    """The id by which keys are rotated: the even id for digits, the id in the text for other tokens."""
    turns_Q2: np.ndarray
    """What must be added to that id to get the id in the text, and to get the even id."""


def spaced_ids(spots: RowSpots, spacing: int) -> SpacedIds:
    """The ids of the last tokens of a row. `spacing`: the difference between the even ids of successive numbers."""
    numbers_K = spots.own[:, 0]
    is_digit_Q = numbers_K[spots.at] > 0
    within_Q = is_digit_Q | (spots.starts > 0)  # a separator belongs to the number that it stands in
    even_Q = spacing * (np.maximum.accumulate(numbers_K)[spots.at] + ~within_Q)
    text_Q = text_positions(numbers_K > 0)[spots.at]
    positions_Q = np.where(is_digit_Q, even_Q, text_Q)
    return SpacedIds(positions_Q, np.stack([text_Q, even_Q], 1) - positions_Q[:, None])


class EvenSpacingConfig(PartConfig, kind="even_spacing"):
    """Numbers are evenly spaced, as seen by a token that attends to digits, no matter what text is between them. Needs
    parts.coupled, and may be added after training."""

    FROM_SCRATCH, LATER = False, ("distance",)

    distance: int = Field(default=3, ge=1)
    """The distance in position ids between one number and the next; in the text it is 3 in "12 + 30 ="."""

    def check(self, run: Any) -> None:
        if "coupled" not in run.parts:
            raise ValueError("parts.even_spacing needs parts.coupled, in which a number counts as one token")

    def build(self, model: Any, others: Parts) -> "EvenSpacing":
        if "coupled" not in others:
            raise ModelError("parts.even_spacing needs a model that was tuned with parts.coupled")
        return EvenSpacing(self, others["coupled"].operands)  # type: ignore[attr-defined]


class EvenSpacing(Part):
    beyond_scores = True

    def __init__(self, config: EvenSpacingConfig, operands: int) -> None:
        """`operands`: how many numbers come before an answer."""
        super().__init__(config)
        self.operands, self._reverse = operands, "total"

    def attach(self, model: Any) -> None:
        if (kind := model.model.rotary_emb.rope_type) in ROPE_THAT_CHANGES:
            raise ModelError(f"parts.even_spacing does not go with RoPE of the kind {kind}")

    def read(self, words: Words, reverse: str) -> None:
        self._reverse = reverse

    def _ids(self, rows: Rows) -> SpacedIds:
        """The ids of the tokens of a forward pass, stacked."""
        return rows.once(("even ids", self.config.distance), lambda: self._spaced(rows))

    def _spaced(self, rows: Rows) -> SpacedIds:
        spots = rows.spots(self._reverse, self.operands)
        ids = [spaced_ids(RowSpots(*row), self.config.distance) for row in zip(*spots, strict=True)]
        return SpacedIds(*(np.stack(part) for part in zip(*ids, strict=True)))

    def position_ids(self, rows: Rows) -> torch.Tensor:
        return torch.from_numpy(self._ids(rows).positions_Q)

    def inputs(self, rows: Rows) -> dict[str, torch.Tensor]:
        """turns_BQ2: see `SpacedIds`; digits_BK: whether keys are digits. Nothing for rows without digits."""
        digits_BK = rows.of_keys([rows.words.are_digits(whole) for whole in rows.wholes])
        return (
            {"turns_BQ2": torch.from_numpy(self._ids(rows).turns_Q2), "digits_BK": digits_BK} if digits_BK.any() else {}
        )

    def act(self, inputs: Inputs, step: Step) -> Act | None:
        return _Turning(inputs, step) if inputs else None


class _Turning(Act):
    """Turns the queries of a forward pass to their two ids."""

    def __init__(self, inputs: Inputs, step: Step) -> None:
        rotary: Any = step.rotary
        scale = rotary.attention_scaling  # some kinds of RoPE scale all states, which has been done already

        def rotation(turns_BQ: torch.Tensor) -> Rotation:
            cosine_BQD, sine_BQD = rotary(step.hidden_BQD, position_ids=turns_BQ)
            return cosine_BQD / scale, sine_BQD / scale

        self.to_text, self.to_even = (rotation(inputs["turns_BQ2"][..., which]) for which in (0, 1))
        self.digits_BK = inputs["digits_BK"]

    def queries(self, query_BHQD: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return _turned(query_BHQD, self.to_text), _turned(query_BHQD, self.to_even), self.digits_BK


def _turned(query_BHQD: torch.Tensor, rotation: Rotation) -> torch.Tensor:
    cosine_B1QD, sine_B1QD = (part[:, None].to(query_BHQD.dtype) for part in rotation)
    first, second = query_BHQD.chunk(2, -1)
    return query_BHQD * cosine_B1QD + torch.cat([-second, first], -1) * sine_B1QD
