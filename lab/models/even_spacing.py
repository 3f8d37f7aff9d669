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

    def both(self, query_BHQD: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The queries that attend to words, and those that attend to digits."""
        return _turned(query_BHQD, self.to_text), _turned(query_BHQD, self.to_even)


def spaced_attention(
    queries: tuple[torch.Tensor, torch.Tensor],
    key_BGKD: torch.Tensor,
    value_BGKD: torch.Tensor,
    mask_BHQK: torch.Tensor,
    digits_BK: torch.Tensor,
    scale: float,
) -> torch.Tensor:
    """Attention in which digits are seen by other queries than words. Returns (B, H, Q, D).

    Args:
        queries: those that attend to words, and those that attend to digits, (B, H, Q, D) each.
        key_BGKD: the keys.
        value_BGKD: the values.
        mask_BHQK: what is added to the scores; 1 may stand for all heads.
        digits_BK: whether each key is a digit. Keys beyond these are free slots of a cache, which the mask hides.
        scale: factor on the products of queries and keys.
    """
    groups, keys = key_BGKD.shape[1:3]
    digits_B111K = pad(digits_BK, (0, keys - digits_BK.shape[1]))[:, None, None, None]
    # the heads of a group share their keys, so that keys need not be copied
    to_words, to_digits = (
        part.unflatten(1, (groups, -1)).flatten(2, 3) @ key_BGKD.transpose(-1, -2) for part in queries
    )
    heads, count = queries[0].shape[1] // groups, queries[0].shape[2]
    scores = torch.where(digits_B111K, *(part.unflatten(2, (heads, count)) for part in (to_digits, to_words))) * scale
    scores = scores + mask_BHQK.expand(-1, groups * heads, -1, -1).unflatten(1, (groups, heads))
    weights = scores.softmax(-1, dtype=torch.float32).to(value_BGKD.dtype)
    return (weights.flatten(2, 3) @ value_BGKD).unflatten(2, (heads, count)).flatten(1, 2)


def _turned(query_BHQD: torch.Tensor, rotation: Rotation) -> torch.Tensor:
    cosine_B1QD, sine_B1QD = (part[:, None].to(query_BHQD.dtype) for part in rotation)
    return query_BHQD * cosine_B1QD + rotate_half(query_BHQD) * sine_B1QD
