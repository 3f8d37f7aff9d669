"""Equal distances between numbers in attention to digits, however many words stand between them.

    4321 geese came in the rainy spring and 98 in autumn : 32
    0    1     2    3  4   5     6      7   8  9  10    11 12     ids in the text (`coupled`)
    3    6     6    6  6   6     6      6   6  9  9      9  9     even ids with a spacing of 3

Each token has two ids. Attention to words uses the ids in the text; attention to digits uses the even ids, of the query
as of the digit. So the distance at which a digit is seen depends neither on the words between the numbers nor on how
long the numbers are. Words have the even id of the next number, because the last of them writes its first digit.

RoPE rotates the key of a digit by its even id, and that of a word by its id in the text. A query is rotated like a key
at first, and then turned to each of its two ids. The two versions stand side by side in one longer vector, in which
keys have zeros in place of the version that does not count.

Shapes: B rows, Q queries, K keys, H heads, G key-value heads, D width of a head.
"""

from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from torch import nn
from torch.nn.functional import pad
from transformers.models.llama.modeling_llama import rotate_half

from lab.models.coupled import text_positions
from lab.text.places import RowSpots

Rotation: TypeAlias = tuple[torch.Tensor, torch.Tensor]
"""Cosines and sines of the angles of each query, (B, Q, D)."""
ROPE_THAT_CHANGES = ("dynamic", "longrope")
"""Kinds of RoPE whose angles depend on the largest id of a forward pass, so that a rotation cannot be continued."""


class SpacedIds(NamedTuple):
    positions_Q: np.ndarray
    """The id by which keys are rotated: of digits the even id, of other tokens the id in the text."""
    turns_Q2: np.ndarray
    """What is missing from it to the id in the text, and to the even id."""


def spaced_ids(spots: RowSpots, spacing: int) -> SpacedIds:
    """The ids of the last tokens of a row. `spacing`: the difference between the even ids of successive numbers."""
    numbers_K = spots.own[:, 0]
    is_digit_Q = numbers_K[spots.at] > 0
    within_Q = is_digit_Q | (spots.starts > 0)  # a separator belongs to the number that it stands in
    even_Q = spacing * (np.maximum.accumulate(numbers_K)[spots.at] + ~within_Q)
    text_Q = text_positions(numbers_K > 0)[spots.at]
    positions_Q = np.where(is_digit_Q, even_Q, text_Q)
    return SpacedIds(positions_Q, np.stack([text_Q, even_Q], 1) - positions_Q[:, None])


class EvenSpacing(NamedTuple):
    """How the queries of a forward pass turn to their two ids."""

    to_text: Rotation
    to_even: Rotation
    digits_BK: torch.Tensor
    """Whether each key is a digit."""

    @classmethod
    def from_turns(
        cls, rotary: nn.Module, like: torch.Tensor, turns_BQ2: torch.Tensor, digits_BK: torch.Tensor
    ) -> "EvenSpacing":
        """The rotations by differences of ids.

        Args:
            rotary: the model's rotary embedding.
            like: any tensor of the dtype and on the device of the states.
            turns_BQ2: see `SpacedIds`.
            digits_BK: whether each key is a digit.
        """
        scale = rotary.attention_scaling  # some kinds of RoPE scale all states, which has been done already

        def rotation(turns_BQ: torch.Tensor) -> Rotation:
            cosine_BQD, sine_BQD = rotary(like, position_ids=turns_BQ)
            return cosine_BQD / scale, sine_BQD / scale

        return cls(rotation(turns_BQ2[..., 0]), rotation(turns_BQ2[..., 1]), digits_BK)

    def side_by_side(self, query_BHQD: torch.Tensor, key_BGKD: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Queries (B, H, Q, 2D) and keys (B, G, K, 2D), whose products are those of even ids where the key is a digit.
        Keys beyond `digits_BK` are free slots of a cache, which the mask hides."""
        free = key_BGKD.shape[2] - self.digits_BK.shape[1]
        digits_B1K1 = pad(self.digits_BK, (0, free))[:, None, :, None]
        keys = key_BGKD.masked_fill(digits_B1K1, 0), key_BGKD.masked_fill(~digits_B1K1, 0)
        queries = (_turned(query_BHQD, rotation) for rotation in (self.to_text, self.to_even))
        return torch.cat([*queries], -1), torch.cat(keys, -1)


def _turned(query_BHQD: torch.Tensor, rotation: Rotation) -> torch.Tensor:
    cosine_B1QD, sine_B1QD = (part[:, None].to(query_BHQD.dtype) for part in rotation)
    return query_BHQD * cosine_B1QD + rotate_half(query_BHQD) * sine_B1QD
