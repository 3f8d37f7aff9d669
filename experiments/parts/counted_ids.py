"""Places that a model finds by itself: countdown ids (`lab.parts.countdown_ids`), except that it learns which words are
counted.

A place is the number of counted words from a token to the end of its number. Each word of the vocabulary has a learned
share: how much it counts, from 0 (the word ends a number) to 1. Before training, all shares are one half:

    tokens            1    2    5  <add_integer>    9    7  =
    share           1/2  1/2  1/2            1/2  1/2  1/2        before training
    place           .98  .97  .94            .88  .75  .50
    share             1    1    1              0    1    1        after it
    place             3    2    1              0    2    1

From right to left, place = share x (1 + the place to the right), so a word with share 0 ends a number. The answer is
counted down from the question's largest place. During training, places are real numbers, so that shares get gradients
through the bias against far tokens and through the relative keys, which are interpolated between whole distances. A
share thus changes so that the digits that matter come nearer. Outside of training, shares are rounded to 0 or 1.

Shares are stretched sigmoids, as in Louizos et al. 2018 (arXiv 1712.01312), so they can become exactly 0 or 1.

Shapes: B rows, T tokens, V words.
"""

from dataclasses import replace
from typing import Any

import torch
from torch import nn

from lab.config.parts import PartConfig, Parts
from lab.parts.countdown_ids import check_counts_down, countdown
from lab.parts.rows import Rows
from lab.parts.token_facts import NotatedPart, TokenFacts, answered

_RATE = 60
"""The factor on the learned parameters, because shares must change more than weights in the same number of steps."""
_BEYOND = 0.1
"""How far the sigmoid is stretched beyond 0 and 1."""


class CountedIdsConfig(PartConfig, kind="counted_ids"):
    """Like countdown_ids, but the model learns which words are counted."""

    PRETRAINED, DECIDES, ONES_FIRST = False, True, True

    def check(self, run: Any) -> None:
        if "relative_keys" not in run.parts or "window" in run.parts:
            raise ValueError("parts.counted_ids learns by gradients: use parts.relative_keys and no parts.window")
        if run.data.packing > 1:
            raise ValueError("parts.counted_ids needs data.packing=1")
        check_counts_down(run, "parts.counted_ids")

    def build(self, model: Any, others: Parts) -> "CountedIds":
        return CountedIds(self, model.vocab_size)


class CountedIds(NotatedPart):
    in_pass = True

    def __init__(self, config: CountedIdsConfig, words: int) -> None:
        """`words`: the number of words of the vocabulary."""
        super().__init__(config)
        self.learned = nn.Parameter(torch.empty(words))
        self.reset()

    def reset(self) -> None:
        nn.init.zeros_(self.learned)

    def shares(self) -> torch.Tensor:
        """How much each word counts, (V,), from 0 to 1."""
        return ((1 + 2 * _BEYOND) * (_RATE * self.learned).sigmoid() - _BEYOND).clamp(0, 1)

    def position_ids(self, rows: Rows) -> torch.Tensor:
        return rows.of_queries(self.places(rows.tokens_RT, self.facts(rows.tokens_RT.device)))

    def places(self, ids_BT: torch.Tensor, facts: TokenFacts) -> torch.Tensor:
        """The places in whole rows with one problem each, (B, T): real numbers in training, else whole ones."""
        shares_V = self.shares().float()
        if not self.training:
            counted_V = shares_V.round().long()
            ends = replace(facts, digits=counted_V, ends_run=counted_V == 0, has_place=counted_V > 0)
            return countdown(ids_BT, ends) * ((ids_BT != facts.begin) & (ids_BT != facts.pad))
        shares_BT, answered_BT = shares_V[ids_BT], answered(ids_BT, facts)
        place_B, places = shares_V.new_zeros(len(ids_BT)), []
        for token in reversed(range(ids_BT.shape[1])):
            place_B = shares_BT[:, token] * (1 + place_B) * ~answered_BT[:, token]
            places.append(place_B)
        asked_BT = torch.stack(places[::-1], 1)
        counted_BT = (shares_BT * (answered_BT & (ids_BT != facts.equals))).cumsum(-1)
        return torch.where(answered_BT, asked_BT.amax(-1, keepdim=True) + 2 - counted_BT, asked_BT)
