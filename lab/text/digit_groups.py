"""Cuts the digits of one part of a number into groups, each of which is one token (Number Cookbook, section 3.1).

           1234567 as an integer   .1234567 as decimals    groups of at most 3 digits
    aligned     1 234 567               123 456 7          counted from the ones digit, or from the point
    left        123 456 7               123 456 7          counted from the left
    random      12 3 456 7              1 23 4 567         lengths are drawn anew each time
    mixed       12 345 67               12 345 67          byte pairs, learned from numbers

Reversed digits are cut in the order in which they are written: groups from the left cut 7654321 into 765 432 1. Only
aligned groups keep the places that they have in the number (lab/text/notation.py).

The paper's own tokenizers cut aligned groups; Llama 3's tokenizer cuts groups from the left. `random` is the paper's
random tokenizer. `mixed` stands for GPT-2's tokenizer, whose groups are irregular.
"""

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from lab.numbers.philox import philox

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Kind = Literal["aligned", "left", "mixed", "random"]

_NUMBERS = 20_000
_LONGEST = 8
"""How many numbers the byte pairs are learned from, and the largest number of digits in one of them."""


def groups(digits: str, kind: Kind, size: int, alignment: str, words: Iterator[int] | None = None) -> list[str]:
    """The groups from left to right; joined, they give `digits` again.

    Args:
        digits: the digits of one part.
        kind: how to cut them (see the table above).
        size: the largest number of digits in a group.
        alignment: "right" if the part is counted from its ones digit, "left" if it is counted from the point
            (`Representation.alignment`). Only aligned groups depend on it.
        words: random integers, one for each group. Only random groups need them.

    Raises ValueError for random groups without `words`.
    """
    if size == 1:
        return list(digits)
    if kind == "random":
        return _random(digits, size, words)
    if kind == "mixed":
        return [token.value for token in _byte_pairs(size).model.tokenize(digits)]
    first = len(digits) % size if kind == "aligned" and alignment == "right" else 0
    rest = [digits[i : i + size] for i in range(first, len(digits), size)]
    return [digits[:first], *rest] if first else rest


def vocabulary(kind: Kind, size: int) -> list[str]:
    """Every possible group, shortest first: all strings of 1 to `size` digits, or the learned groups if mixed."""
    if kind == "mixed" and size > 1:
        return sorted(_byte_pairs(size).get_vocab(), key=lambda group: (len(group), group))
    return [f"{number:0{length}d}" for length in range(1, size + 1) for number in range(10**length)]


def _random(digits: str, size: int, words: Iterator[int] | None) -> list[str]:
    if words is None:
        raise ValueError("random groups need random words")
    cut: list[str] = []
    start = 0
    while start < len(digits):
        end = start + 1 + next(words) % size
        cut.append(digits[start:end])
        start = end
    return cut


@functools.cache
def _byte_pairs(size: int) -> "Tokenizer":
    """Byte pairs (Sennrich et al. 2016) that merge up to `size` digits, learned from a fixed set of numbers.

    The vocabulary has half as many groups as there are strings of `size` digits, so that most numbers contain groups of
    all lengths.
    """
    from tokenizers import Tokenizer, models, trainers  # takes a tenth of a second, and the other kinds do not need it

    words = philox("byte pairs", size).random_raw(2 * _NUMBERS).tolist()
    lengths, values = words[:_NUMBERS], words[_NUMBERS:]
    numbers = [str(value % 10 ** (1 + length % _LONGEST)) for length, value in zip(lengths, values, strict=True)]
    tokenizer = Tokenizer(models.BPE())
    trainer = trainers.BpeTrainer(
        vocab_size=10 + 10**size // 2,
        max_token_length=size + 1,  # tokenizers 0.23 excludes the bound itself
        initial_alphabet=list("0123456789"),
        show_progress=False,
    )
    tokenizer.train_from_iterator(numbers, trainer)
    return tokenizer
