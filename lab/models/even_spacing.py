"""Numbers that are equally far apart, however many words stand between them, as attention to digits sees it.

    4321 geese came in the rainy spring and 98 in autumn : 32
    0    1     2    3  4   5     6      7   8  9  10    11 12     ids in the text (`coupled`)
    3    6     6    6  6   6     6      6   6  9  9      9  9     even ids with a spacing of 3

A token that attends to a word is rotated by its id in the text, and so is the word. A token that attends to a digit is
rotated by its even id, and so is the digit. A sum then depends no more on the number of words between its numbers than
coupled ids let it depend on the number of their digits. Words have the even id of the number that comes next, because
the last of them writes its first digit.

Queries and keys arrive rotated by their ids in the text. Rotating them further, by the difference of the ids, gives a
second version of each. The two versions stand side by side in one longer vector, in which keys have zeros in place of
the version that does not count.

Shapes: B rows, Q queries, K keys, H heads, G key-value heads, D width of a head.
"""

from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from torch import nn
from torch.nn.functional import pad
from transformers.models.llama.modeling_llama import rotate_half

Rotation: TypeAlias = tuple[torch.Tensor, torch.Tensor]
"""Cosines and sines of the angles of each token, (B, T, D)."""


def even_ids(numbers_K: np.ndarray, spacing: int) -> np.ndarray:
    """The even id of each token of a row, (K,).

    Args:
        numbers_K: for each digit, the number of its number in the row, from 1; 0 for other tokens.
        spacing: the difference between the ids of successive numbers.
    """
    return spacing * (np.maximum.accumulate(numbers_K) + (numbers_K == 0))


class EvenSpacing(NamedTuple):
    """How the queries and keys of a forward pass turn from ids in the text to even ids."""

    of_queries: Rotation
    of_keys: Rotation
    digits_BK: torch.Tensor
    """Whether each key is a digit."""

    @classmethod
    def by(
        cls,
        rotary: nn.Module,
        like: torch.Tensor,
        turns_BQ: torch.Tensor,
        turns_BK: torch.Tensor,
        digits_BK: torch.Tensor,
    ) -> "EvenSpacing":
        """The rotations by differences of ids.

        Args:
            rotary: the model's rotary embedding.
            like: any tensor of the dtype and on the device of the states.
            turns_BQ: the even id of each query minus its id in the text.
            turns_BK: the same for each key.
            digits_BK: whether each key is a digit.
        """
        of_queries, of_keys = (rotary(like, position_ids=turns) for turns in (turns_BQ, turns_BK))
        scale = rotary.attention_scaling  # some kinds of RoPE scale both vectors, which has been done already
        cosine_Q, sine_Q, cosine_K, sine_K = (part / scale for part in (*of_queries, *of_keys))
        return cls((cosine_Q, sine_Q), (cosine_K, sine_K), digits_BK)

    def side_by_side(self, query_BHQD: torch.Tensor, key_BGKD: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Queries (B, H, Q, 2D) and keys (B, G, K, 2D), whose products are those of even ids where the key is a digit.
        Keys after those that the rotations are known for are free slots of a cache, and stay hidden."""
        free = key_BGKD.shape[2] - self.digits_BK.shape[1]
        digits_B1K1 = pad(self.digits_BK, (0, free))[:, None, :, None]
        cosine, sine = (pad(part, (0, 0, 0, free)) for part in self.of_keys)
        even_BGKD = _turned(key_BGKD, (cosine, sine))
        keys = key_BGKD.masked_fill(digits_B1K1, 0), even_BGKD.masked_fill(~digits_B1K1, 0)
        return torch.cat([query_BHQD, _turned(query_BHQD, self.of_queries)], -1), torch.cat(keys, -1)


def _turned(states_BHTD: torch.Tensor, rotation: Rotation) -> torch.Tensor:
    cosine_B1TD, sine_B1TD = (part[:, None].to(states_BHTD.dtype) for part in rotation)
    return states_BHTD * cosine_B1TD + rotate_half(states_BHTD) * sine_B1TD
