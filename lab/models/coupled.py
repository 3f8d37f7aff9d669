"""Numbers of any length that count as one token, and attention that sees only the digits near the current place.

    What is 4321 plus 98? 32       1234 + 89 = 1323, lowest digit first; the next digit is the hundreds digit
    0    1  2    3    4 5 6        position ids: all digits of a number share one (spaces left out here)
             .x.       .           x: the digit that is seen with a window of 0; with a window of 1, also those at .

A token sees itself and, unless `LocalityConfig.words` says otherwise, all tokens before it that are not digits. From
the two preceding numbers it sees only the digits whose place is close to the place of the digit that would be written
next. (`same_place` determines these digits, and has the bias by which heads distinguish them.) All other digits are
hidden. What the model computes for a digit therefore depends on the digits around its place alone, not on the length
of the number or on where the digit stands in it: if it is right for eight digits, it is right for a thousand. A text
without numbers is computed exactly as without these changes.

The point of an answer also sees the digit before it. A digit is written by the token before it, so without this the
carry out of the tenths could not reach the ones.

The other digits must be hidden in every layer: if each layer saw one place further, thirty layers would see thirty
places.

Shapes: Q queries of a row, K keys.
"""

from collections.abc import Sequence

import numpy as np
import torch

from lab.text.places import RowSpots

HIDDEN = -1
"""The kind (`same_place.pairs`) of a pair whose query must not see its key."""
FAR_KIND = -2
"""The kind of a pair whose key is a digit outside the window that is seen. If such digits fade, the kind is FAR_KIND
minus the number of places between the key and the digit that the query writes."""


def text_positions(digits_K: np.ndarray) -> np.ndarray:
    """The position id of each token of a row, (K,); adjacent digits share one id.

    `digits_K`: whether each token is a digit.
    """
    return np.cumsum(~(digits_K & np.append(False, digits_K[:-1]))) - 1


def hide(
    kinds_QK: torch.Tensor, spots: RowSpots, words: str = "all", padding: Sequence[int] = (0,), far: str = "hidden"
) -> torch.Tensor:
    """The kinds of the last Q tokens of stacked rows, with HIDDEN for what the query must not see.

    A token always sees itself. A separator in an answer also sees the digit before it, which may pass on a carry.

    Args:
        kinds_QK: the kinds of pairs in each row (`same_place.pairs`). Digits of kind 0 are far.
        spots: the spots of the rows.
        words: which words digits see; see `LocalityConfig.words`.
        padding: how many tokens of each row stand before its text, or one number for all rows.
        far: what happens to far digits; see `LocalityConfig.far`. Unless they are hidden, their kind is FAR_KIND or
            less.
    """
    at_K, at_Q1 = torch.arange(kinds_QK.shape[-1]), torch.from_numpy(spots.at)[..., None]
    starts_Q1, digits_K = torch.from_numpy(spots.starts)[..., None], torch.from_numpy(spots.own)[..., 1] > 0
    digits_Q1 = digits_K.gather(-1, at_Q1[..., 0])[..., None]
    numbers_Q1 = starts_Q1 > 0
    answers_Q1 = numbers_Q1 & (torch.from_numpy(spots.following)[..., :1] > 0)
    separators_Q1 = answers_Q1 & ~digits_Q1
    seen_QK = (at_K == at_Q1) | (separators_Q1 & (at_K == at_Q1 - 1))
    far_QK = digits_K[..., None, :].expand(kinds_QK.shape)
    first_B11 = torch.tensor(padding)[:, None, None]
    unseen_QK = torch.zeros_like(far_QK)
    words_QK = ~torch.from_numpy(spots.inside)[..., None, :] & (at_K > first_B11)
    if words in ("last", "nearest"):
        limited_Q1 = numbers_Q1 if words == "nearest" else answers_Q1
        unseen_QK = words_QK & limited_Q1 & (at_K < starts_Q1 - 1)
    if words == "none":
        unseen_QK = words_QK & (digits_Q1 | answers_Q1)
    seen_kind = FAR_KIND - _apart(spots) if far == "fading" else FAR_KIND
    far_kind = HIDDEN if far == "hidden" else seen_kind
    open_QK = (kinds_QK == 0) & ~seen_QK
    return torch.where(open_QK & far_QK, far_kind, kinds_QK).masked_fill(open_QK & unseen_QK, HIDDEN)


def _apart(spots: RowSpots) -> torch.Tensor:
    """How many places each digit is away from each of the last tokens, (B, Q, K); 0 for keys that are not digits.

    The place of a token is that of the digit that would follow it. It counts as 0 if no digit can follow yet, or if the
    key is a digit of another kind, such as one of an exponent. Within the token's own number, the distance is counted
    in tokens, because the places of an unfinished number may not be known yet. So a distance depends on no later token,
    and what a token sees does not grow with the length of the numbers.
    """
    next_BQ3, own_BK3 = torch.from_numpy(spots.following), torch.from_numpy(spots.own)
    at_BQ, starts_BQ = torch.from_numpy(spots.at), torch.from_numpy(spots.starts)
    begun_BQ = own_BK3[..., 0].gather(1, starts_BQ.where(starts_BQ > 0, at_BQ))
    number_BQ = next_BQ3[..., 0].where(next_BQ3[..., 0] > 0, begun_BQ)
    key_number_BK, key_what_BK, key_place_BK = own_BK3.unbind(-1)
    from_BQK = next_BQ3[..., 2:].where(next_BQ3[..., 1:2] == key_what_BK[:, None], 0)
    tokens_BQK = at_BQ[..., None] - torch.arange(own_BK3.shape[1])
    own_BQK = number_BQ[..., None] == key_number_BK[:, None]
    return tokens_BQK.where(own_BQK, key_place_BK[:, None] - from_BQK).abs().where(key_what_BK[:, None] > 0, 0)
