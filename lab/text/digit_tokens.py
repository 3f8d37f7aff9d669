"""Changes how a pretrained tokenizer cuts runs of digits; all other text is cut as before.

                 left         right (decimals from the point)
    1234567      123 456 7    1 234 567
    1234.1234    123 4 . 123 4    1 234 . 123 4

Groups of digits are split off before the tokenizer's own rules apply. A group that the vocabulary contains is one
token; groups that it lacks are added as new tokens at its end.
"""

import copy
import json
import re
from typing import Any, NamedTuple

from tokenizers import Tokenizer
from transformers.tokenization_utils_base import PreTrainedTokenizerBase

from lab.config.finetuning import DigitTokensConfig
from lab.errors import ModelError
from lab.text import digit_groups

_LONGEST = 200
"""The largest number of decimals that are grouped from the point: each group is an alternative of the look-behind."""


class DigitTokens(NamedTuple):
    tokenizer: PreTrainedTokenizerBase
    new: dict[int, list[int]]
    """For the id of each new token, the ids of the tokens whose mean embedding initializes its own."""
    forbidden: list[int]
    """Ids of tokens with more adjacent digits than a group may have; the tokenizer never produces them."""


def swap_digits(tokenizer: PreTrainedTokenizerBase, config: DigitTokensConfig, hints: list[str]) -> DigitTokens:
    """A copy of the tokenizer that cuts digits as the config says and has a token for each hint.

    Args:
        tokenizer: a pretrained tokenizer; it is not changed.
        config: how digits are cut.
        hints: index hints, which become tokens, such as <0.3>.

    Raises ModelError if the tokenizer is not a byte-pair tokenizer of the library `tokenizers`, or if it lacks a token
    for a single digit.
    """
    own: Any = tokenizer
    state = json.loads(own.backend_tokenizer.to_str()) if tokenizer.is_fast else None
    if state is None or state["model"]["type"] != "BPE":
        raise ModelError("tokenizer.digits: works only with byte-pair tokenizers of the library tokenizers")
    vocabulary: dict[str, int] = state["model"]["vocab"]
    if lacking := [digit for digit in "0123456789" if digit not in vocabulary]:
        raise ModelError(f"tokenizer.digits: the tokenizer has no token for the digit {lacking[0]} alone")
    size, first = len(tokenizer), len(tokenizer)
    new: dict[int, list[int]] = {}
    forbidden: list[int] = []
    if config.kind != "original":
        most = 1 if config.kind == "one_digit" else config.k
        for group in digit_groups.vocabulary("left", most):
            if group not in vocabulary:
                vocabulary[group] = size
                new[size] = [vocabulary[digit] for digit in group]
                size += 1
        forbidden = [number for word, number in vocabulary.items() if re.search(rf"[0-9]{{{most + 1}}}", word)]
        state["model"]["ignore_merges"] = True  # a group that is a token needs no merges
        state["pre_tokenizer"] = _before(state["pre_tokenizer"], _split(most, config.align))
    swapped = copy.deepcopy(tokenizer)
    swapped._tokenizer = Tokenizer.from_str(json.dumps(state))  # type: ignore[attr-defined]
    if hints:
        swapped.add_tokens(hints)
        digits = [vocabulary[digit] for digit in "0123456789"]
        new |= dict.fromkeys(swapped.convert_tokens_to_ids(hints), digits)  # type: ignore[union-attr]
    if len(swapped) != first + len(new):
        raise ModelError("tokenizer.digits: the ids of new tokens are taken by the tokenizer's added tokens")
    return DigitTokens(swapped, new, forbidden)


def _split(most: int, align: str) -> dict[str, Any]:
    """A pre-tokenizer that splits off every group of digits."""
    pattern = rf"[0-9]{{1,{most}}}"
    if most > 1 and align == "right":
        # one alternative per length, so that a group of decimals starts a whole number of groups after the point
        whole = "|".join(rf"\.[0-9]{{{length}}}" if length else r"\." for length in range(0, _LONGEST, most))
        pattern = rf"(?<={whole}){pattern}|{pattern}(?=(?:[0-9]{{{most}}})*(?![0-9]))"
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def _before(own: dict[str, Any] | None, split: dict[str, Any]) -> dict[str, Any]:
    """The split, followed by the tokenizer's own rules except those that separate every digit."""
    steps = [] if own is None else own["pretokenizers"] if own["type"] == "Sequence" else [own]
    return {"type": "Sequence", "pretokenizers": [split, *(step for step in steps if step["type"] != "Digits")]}
