"""The graft: numbers of any length count as one token, and attention sees only the digits near the current place.

    What is 4321 plus 98? 32       1234 + 89 = 1323, lowest digit first; the next digit is the hundreds digit
    0    1  2    3    4 5 6        position ids: all digits of a number share one (spaces left out here)
             .x.       .           x: the digit that is seen with a window of 0; with a window of 1, also those at .

A token sees itself and, unless `CoupledConfig.words` says otherwise, all tokens before it that are not digits. From
the two preceding numbers it sees only the digits whose place is close to the place of the digit that would be written
next. (`same_place` determines these digits, and has the bias by which heads distinguish them.) All other digits are
hidden. What the model computes for a digit therefore depends on the digits around its place alone, not on the length
of the number or on where the digit stands in it: if it is right for eight digits, it is right for a thousand. A text
without numbers is computed exactly as without these changes.

The ids are those of Cho et al. (2024, arXiv 2405.20671) in a pretrained model; there, numbers had plain tokens around
them, and no digit was hidden.

The point of an answer also sees the digit before it. A digit is written by the token before it, so without this the
carry out of the tenths could not reach the ones.

The other digits must be hidden in every layer: if each layer saw one place further, thirty layers would see thirty
places.

Shapes: Q queries of a row, K keys.
"""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import nn

from lab.config.parts import LayerRange, PartConfig, Parts
from lab.config.schema import check_no_products, chosen
from lab.numbers.representations import Float, Integer
from lab.parts.part import Act, Inputs, Step, layers_of
from lab.parts.rows import Rows
from lab.parts.same_place import NUMBERS, KindBias, PlaceBias, check_one_digit, one_hot, pairs
from lab.text.places import RowSpots, in_number

HIDDEN = -1
"""The kind (`same_place.pairs`) of a pair whose query must not see its key."""
FAR_KIND = -2
"""The kind of a pair whose key is a digit outside the window that is seen. If such digits fade, the kind is FAR_KIND
minus the number of places between the key and the digit that the query writes."""


class CoupledConfig(PartConfig, kind="coupled"):
    """RoPE in which a number counts as one token, whatever its length. A token then sees all words before it, but only
    those digits whose place is close to the place of the digit that it writes. Answers are written from their lowest
    digit up (format.reverse=total or answer), or as people write them (format.reverse=none, pad=answer and
    carry_place=true)."""

    FROM_SCRATCH, LATER, BEGINS = False, ("far_at_most",), True

    window: int = Field(default=1, ge=0)
    """How many places are visible on each side of the place of the digit that is written next."""
    operands: int = Field(default=2, ge=1, le=2)
    """How many numbers come before an answer. A token with fewer numbers before it sees itself, and words as `words`
    allows, but no other digits, not even those of its own number."""
    words: Literal["all", "last", "nearest", "none"] = "all"
    """Which words digits see. all: all words before them. last: the digits of an answer see only the first token of the
    text and the last word before the answer, which has seen all other words. nearest: the digits of every number, not
    only of an answer, see only the first token of the text and the last word before their number; with
    format.reverse=none, use this instead of last. none: no digit sees any word except the first token of the text,
    which suits models of a single task."""
    layers: LayerRange | None = None
    """The first and the last layer in which other digits are hidden; all layers if not given."""
    far: Literal["hidden", "seen", "fading"] = "hidden"
    """What happens to digits outside the window. hidden: no token attends to them. seen: tokens may attend to them, and
    each head of each layer learns how much to lower their scores, starting from 0. fading: in addition, each head
    learns by how much their scores fall with each further place. With seen and fading, leave out `layers`."""
    far_at_most: int = Field(default=0, ge=0)
    """With far=seen or fading: limits the total attention weight of all digits outside the window. However many there
    are, together they weigh no more than this many would; 0 for no limit."""

    @model_validator(mode="after")
    def _hidden_or_seen(self) -> "CoupledConfig":
        if self.far != "hidden" and self.layers:
            raise ValueError(f"far={self.far} hides no digits in any layer: leave layers out")
        if self.far == "hidden" and self.far_at_most:
            raise ValueError("far_at_most needs far=seen or fading")
        return self

    def check(self, run: Any) -> None:
        if "nope" in run.parts:
            raise ValueError("parts.coupled replaces positions: leave parts.nope out")
        if run.format.reverse == "none" and run.format.carry_place:
            self._check_downward(run)
        elif run.format.reverse not in ("total", "answer"):
            what = "parts.coupled needs answers that are written from their lowest digit up"
            other = "or format.reverse=none, pad=answer and carry_place=true"
            raise ValueError(f"{what}: use format.reverse=total, or answer, {other}")
        check_one_digit(run, "parts.coupled")

    def _check_downward(self, run: Any) -> None:
        """Raises ValueError for settings that do not work with places counted from the highest down."""
        if self.words == "last":
            raise ValueError("parts.coupled.words=last needs answers written ones digit first: use nearest")
        tasks = chosen(run.data.tasks)
        placeless = [one.key for one in tasks if not {one.representation, one.answer} <= {Integer, Float}]
        if placeless:
            what = "format.reverse=none with parts.coupled finds places in integers and floats only"
            raise ValueError(f"{what}: leave {', '.join(placeless)} out of data.tasks")
        check_no_products(tasks, "format.reverse=none with parts.coupled")

    def caveat(self, adds: bool) -> str:
        numbers = {1: "number", 2: "two numbers"}[self.operands]
        if adds:
            return f"an adder, not an assistant: it adds the last {numbers}, whatever is asked"
        return f"no assistant: what it computes, it computes from the last {numbers} of the text, whatever is asked"

    def build(self, model: Any, others: Parts) -> "Coupled":
        hiding = layers_of(model, "parts.coupled.layers", self.layers)
        return Coupled(self, model.num_hidden_layers, model.num_attention_heads, hiding)


class Coupled(PlaceBias):
    """The bias of `same_place` for the places of a window, ids that the digits of a number share, and a mask."""

    first_slope = 0.01
    """How much each place lowers the scores of far digits before training, if they fade."""

    def __init__(self, config: CoupledConfig, layers: int, heads: int, hiding: range) -> None:
        """`hiding`: the layers in which other digits are hidden."""
        super().__init__(config, layers, heads, NUMBERS * (2 * config.window + 1) + (config.far != "hidden"))
        self.slopes = nn.Parameter(torch.empty(layers, heads, 1)) if config.far == "fading" else None
        self.hiding, self.all_hide = hiding, len(hiding) == layers

    def reset(self) -> None:
        super().reset()
        if self.slopes is not None:
            nn.init.constant_(self.slopes, self.first_slope)

    def inputs(self, rows: Rows) -> dict[str, torch.Tensor]:
        """kinds_BQK: the kind of each pair; see `pairs` and `hide`."""
        spots, config = rows.spots(self._reverse, self.config.operands), self.config
        return {"kinds_BQK": hide(pairs(spots, config.window), spots, config.words, rows.padding, config.far)}

    def position_ids(self, rows: Rows) -> torch.Tensor:
        return rows.of_queries([text_positions(rows.words.are_digits(whole)) for whole in rows.wholes])

    @property
    def looks_ahead(self) -> bool:
        """Places depend on later tokens if the highest digit comes first: the length of the number decides the place of
        each digit."""
        return self._reverse == "none"

    def shareable(self, words: Sequence[str], agreed: int) -> int:
        """If places depend on later tokens, a number at the end of the shared tokens is not shared: without what
        follows it, it would be read as an unfinished answer."""
        while self.looks_ahead and agreed and in_number(words[agreed - 1]):
            agreed -= 1
        return agreed

    def table(self) -> torch.Tensor:
        """The biases of all kinds, (L, H, C), and, if far digits fade, what is added for each place that they are away,
        (L, H, C + 1). This is never above zero."""
        table_LHC = super().table()
        return table_LHC if self.slopes is None else torch.cat([table_LHC, -self.slopes.abs()], -1)

    def act(self, inputs: Inputs, step: Step) -> Act:
        kinds_BQK, dtype, far_BQK = inputs["kinds_BQK"], step.hidden_BQD.dtype, None
        places_BQK, count = (FAR_KIND - kinds_BQK).clamp(min=0), self.bias.shape[-1] + 1
        if self.config.far != "hidden":
            far_BQK = kinds_BQK <= FAR_KIND
            kinds_BQK = kinds_BQK.masked_fill(far_BQK, count - 1)
        kinds_BQKC = one_hot(kinds_BQK, count).to(dtype)
        if self.config.far == "fading":
            kinds_BQKC = torch.cat([kinds_BQKC, places_BQK[..., None].to(dtype)], -1)
        return _Seen(self, kinds_BQKC, kinds_BQK == HIDDEN, far_BQK)


class _Seen(KindBias):
    def __init__(
        self, part: Coupled, kinds_BQKC: torch.Tensor, hidden_BQK: torch.Tensor, far_BQK: torch.Tensor | None
    ) -> None:
        super().__init__(part.table(), kinds_BQKC)
        self.part, self.hidden_BQK, self.far_BQK = part, hidden_BQK, far_BQK

    def shared(self, mask_BHQK: torch.Tensor) -> torch.Tensor:
        mask_BHQK = self._bounded(mask_BHQK)
        return self._hidden(mask_BHQK) if self.part.all_hide else mask_BHQK

    def mask(self, layer: int, mask_BHQK: torch.Tensor) -> torch.Tensor:
        hides = not self.part.all_hide and layer in self.part.hiding
        return super().mask(layer, self._hidden(mask_BHQK) if hides else mask_BHQK)

    def _hidden(self, mask_BHQK: torch.Tensor) -> torch.Tensor:
        return mask_BHQK.masked_fill(self.hidden_BQK[:, None], torch.finfo(mask_BHQK.dtype).min)

    def _bounded(self, mask_BHQK: torch.Tensor) -> torch.Tensor:
        """The mask, lowered at the far digits of a query if it sees more of them than `far_at_most`."""
        if self.far_BQK is None or not self.part.config.far_at_most:
            return mask_BHQK
        far_B1QK = self.far_BQK[:, None] & (mask_BHQK == 0)
        too_many_B1Q1 = far_B1QK.sum(-1, keepdim=True) / self.part.config.far_at_most
        return mask_BHQK - (too_many_B1Q1.clamp(min=1).log() * far_B1QK).to(mask_BHQK.dtype)


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
        words: which words digits see; see `CoupledConfig.words`.
        padding: how many tokens of each row stand before its text, or one number for all rows.
        far: what happens to far digits; see `CoupledConfig.far`. Unless they are hidden, their kind is FAR_KIND or
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
