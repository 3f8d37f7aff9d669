"""A bias of attention towards the digits of the place that is written next, zero at first.

    Add two numbers: 4321 + 98 = 32          1234 + 89; the next digit is of the hundreds
                       ^    ^                the hundreds of the two numbers before (89 has none)
                      ^ ^  ^ ^               and their neighbours

Each head of each layer learns six numbers: what it adds to the score of a digit of the number before, or of the one
before that, whose place is one lower, the same, or one higher. Other tokens have no bias. Numbers are written from
their lowest digit up (format.reverse=total), so that the place of the next digit is known before it is written: that of
the lowest digit of the two numbers before, and one more for each digit since. Places are powers of ten, those of
1.5e3 as those of 1500; the digits of exponents and of the parts of fractions have places among themselves.

A pretrained model has heads that line digits up so, and they lose their digits beyond the lengths that it saw
(`experiments/smollm2_heads.py`). Coupled positions (Cho et al. 2024, arXiv 2405.20671) cure that in models from
scratch; as a bias that begins at zero they disturb nothing that a model knows.

Shapes: B rows, Q queries, K keys, T tokens, L layers, H heads; C kinds of pairs, 0 for those without a bias.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import nn
from transformers.models.llama.modeling_llama import LlamaDecoderLayer

NUMBERS, NEIGHBOURS = 2, 1
"""How many numbers back, and how many places to both sides, a bias reaches."""
KINDS = 1 + NUMBERS * (2 * NEIGHBOURS + 1)

_VALUE, _EXPONENT, _FRACTION = 1, 2, 3
"""What a digit is of; of the part of a fraction that is written second, _FRACTION + 1."""


class _Spot(NamedTuple):
    """Where a digit is: in which number of its row, from 1 up, in what of it, and at which place of that."""

    number: int
    what: int
    place: int


_NOWHERE = _Spot(0, 0, 0)


class _Number:
    """A number as far as it is written, from its lowest digit up: 4321, 57.321 (123.75), 24e25.6 (6.52e42), 31/7."""

    def __init__(self) -> None:
        self.separators = ""
        self.digits: list[list[int]] = [[]]
        """Of each part."""
        self.tokens: list[list[int]] = [[]]

    def take(self, token: int, word: str) -> None:
        if word in _SEPARATORS:
            self.separators += word
            self.digits.append([])
            self.tokens.append([])
        else:
            self.digits[-1].append(int(word))
            self.tokens[-1].append(token)

    def end(self) -> "_Number":
        """The number, without a separator after its last digit: that is a full stop."""
        if not self.digits[-1]:
            self.separators, self.digits, self.tokens = self.separators[:-1], self.digits[:-1], self.tokens[:-1]
        return self

    def turned(self) -> "_Number":
        """The same with its lowest digit first."""
        self.separators = self.separators[::-1]
        self.digits = [part[::-1] for part in reversed(self.digits)]
        self.tokens = [part[::-1] for part in reversed(self.tokens)]
        return self

    @property
    def form(self) -> str:
        """The separator that tells what a number is; none of integers."""
        return next((mark for mark in _SEPARATORS if mark in self.separators), "")

    @property
    def lowest(self) -> int | None:
        """The place of the lowest digit; the parts of fractions have none in common."""
        if self.form == "/":
            return None
        exponent = sum(digit * 10**place for place, digit in enumerate(self.digits[0])) if self.form == "e" else 0
        return exponent - (len(self.digits[-2]) if "." in self.separators else 0)

    def spot(self, number: int, form: str, lowest: int, part: int, index: int) -> _Spot:
        """Of a digit of a part, of a number of this form whose lowest digit is at `lowest`."""
        if form == "/":
            return _Spot(number, _FRACTION + part, index)
        if form == "e" and part == 0:
            return _Spot(number, _EXPONENT, index)
        below = sum(map(len, self.digits[form == "e" : part]))
        return _Spot(number, _VALUE, lowest + below + index)


_SEPARATORS = "/e."
"""The first that a number has tells its form."""


class Pairs(NamedTuple):
    kinds_QK: torch.Tensor
    """By where the digit after a token would be, and where a digit is; 0 for pairs without a bias."""
    digits_K: torch.Tensor
    """Whether a token is a digit."""


def kinds(words: Sequence[str]) -> torch.Tensor:
    """The kind of every pair (T, T) of a token, by where the digit after it would be, and a digit. `words` are those of
    a row, "" for what is passed over, a word a digit."""
    return pairs(words, len(words), NEIGHBOURS).kinds_QK


def pairs(words: Sequence[str], last: int, neighbours: int, ordinary: bool = False) -> Pairs:
    """Of the last tokens of a row, with biases that reach so many places to both sides. `ordinary`: whether numbers end
    in their lowest digit, all but the one that is being written."""
    numbers: list[_Number] = []
    following: list[_Spot] = []
    number = _Number()
    for token, word in enumerate(words):
        if (word.isascii() and word.isdigit()) or (word in _SEPARATORS and word and number.tokens[0]):
            number.take(token, word)
        elif word and number.tokens[0]:
            numbers.append(number.end().turned() if ordinary else number.end())
            number = _Number()
        if token >= len(words) - last:
            following.append(_following(number, numbers))
    own = [_NOWHERE] * len(words)
    for count, done in enumerate([*numbers, number], 1):
        form, lowest = done.form, done.lowest or 0
        for part, tokens in enumerate(done.tokens):
            _, what, place = done.spot(count, form, lowest, part, 0)
            for token in tokens:
                own[token] = _Spot(count, what, place)
                place += 1
    return Pairs(_kinds(following, own, neighbours), torch.tensor(own).view(-1, 3)[:, 1] > 0)


def _following(number: _Number, before: Sequence[_Number]) -> _Spot:
    """Where the next digit of a number would be; what is not written yet is as in the numbers before."""
    known = [other.lowest for other in before[-NUMBERS:] if other.lowest is not None]
    form = number.form if number.separators or not before else before[-1].form
    part = len(number.digits) - 1
    return number.spot(len(before) + 1, form, min(known, default=0), part, len(number.digits[part]))


def _kinds(following: Sequence[_Spot], own: Sequence[_Spot], neighbours: int) -> torch.Tensor:
    queries_T3, keys_T3 = torch.tensor(following).view(-1, 3), torch.tensor(own).view(-1, 3)
    back_TT, what_TT, lower_TT = (queries_T3[:, None] - keys_T3).unbind(-1)
    near_TT = (back_TT >= 1) & (back_TT <= NUMBERS) & (what_TT == 0) & (lower_TT.abs() <= neighbours)
    kinds_TT = 1 + (back_TT - 1) * (2 * neighbours + 1) + neighbours - lower_TT
    return torch.where(near_TT & (keys_T3[:, 1] > 0), kinds_TT, 0)


class SamePlaceBias(nn.Module):
    def __init__(self, layers: int, heads: int, neighbours: int = NEIGHBOURS) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.empty(layers, heads, NUMBERS * (2 * neighbours + 1)))
        self.reset()

    def reset(self) -> None:
        nn.init.zeros_(self.bias)

    def forward(self) -> torch.Tensor:
        """What layers and heads add to the score of a pair of each kind, (L, H, C)."""
        return nn.functional.pad(self.bias, (1, 0))


class SamePlaceLayer(LlamaDecoderLayer):
    bounded = True

    def forward(  # type: ignore[override]
        self,
        hidden_states: torch.Tensor,
        attention_mask: torch.Tensor,
        bias_LHC: torch.Tensor,
        one_hot_BQKC: torch.Tensor,
        unbounded: torch.Tensor | None = None,
        **others: Any,
    ) -> torch.Tensor:
        """attention_mask: what is added to the scores of all heads, (B, 1, Q, K), of a layer that hides no digits
        `unbounded`. one_hot_BQKC: the kinds of pairs.

        While training, torch keeps the scores of every layer: take a small training.micro_batch_size for large models.
        """
        mask = attention_mask if unbounded is None or self.bounded else unbounded
        bias_CH = bias_LHC[self.self_attn.layer_idx].T.to(mask.dtype)
        # a product, whose gradient is one too: that of an index is added up pair by pair
        return super().forward(hidden_states, mask + (one_hot_BQKC @ bias_CH).permute(0, 3, 1, 2), **others)
