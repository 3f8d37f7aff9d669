"""Finds the place of each digit of a written number: the power of ten that the digit counts.

Models may write numbers with the lowest digit first. On the left are such numbers, on the right the places of digits:

    4321 + 98 = 3231    1234 + 89 = 1323: the digits 4 and 9 have place 0, the digits 3 and 8 have place 1
    57.321              123.75: the digit 5 has place -2, the digit 1 has place 2
    24e25.6             6.52e42: the digit 6 has place 42; in the exponent, 2 has place 0 and 4 has place 1
    31/7                7/13: places start at 0 in each part, so 7 and 3 have place 0, and 1 has place 1

`row_spots` reads a row of tokens: numbers may be mixed with text, and the last number may be unfinished.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

OPERANDS = 2
"""How many of the preceding numbers decide at which place a number starts."""
VALUE, EXPONENT, FRACTION = 1, 2, 3
"""What a digit belongs to: the value of a number, its exponent, or a part of a fraction. In a fraction, the part that
is written first is FRACTION, the other one FRACTION + 1."""


class Spot(NamedTuple):
    """Where a digit is in its row."""

    number: int
    """Which number of the row the digit is in, from 1."""
    what: int
    """What the digit belongs to: VALUE, EXPONENT, FRACTION or FRACTION + 1."""
    place: int
    """The power of ten that the digit counts in the value, the exponent or the part of a fraction."""


NO_SPOT = Spot(0, 0, 0)
"""The spot of a token that is not a digit."""


class Number:
    """A number, perhaps unfinished, with its parts and their digits in the order of writing, lowest digit first.

    For example, 57.321 stands for 123.75; its parts have the digits [5, 7] and [3, 2, 1].
    """

    def __init__(self) -> None:
        self.separators = ""
        """The separators, in the order of writing."""
        self.digits: list[list[int]] = [[]]
        """The digits of each part."""
        self.tokens: list[list[int]] = [[]]
        """For each of these digits, the index of its token in the row."""

    def take(self, token: int, word: str) -> None:
        """Appends the next digit or separator.

        Args:
            token: the index of its token in the row.
            word: the digit or separator itself.
        """
        if word in _SEPARATORS:
            self.separators += word
            self.digits.append([])
            self.tokens.append([])
        else:
            self.digits[-1].append(int(word))
            self.tokens[-1].append(token)

    def end(self) -> "Number":
        """Drops a separator after the last digit, because it is punctuation; returns the number itself."""
        if not self.digits[-1]:
            self.separators, self.digits, self.tokens = self.separators[:-1], self.digits[:-1], self.tokens[:-1]
        return self

    def turned(self) -> "Number":
        """Reverses a number that was written highest digit first; returns the number itself."""
        self.separators = self.separators[::-1]
        self.digits = [part[::-1] for part in reversed(self.digits)]
        self.tokens = [part[::-1] for part in reversed(self.tokens)]
        return self

    @property
    def highest(self) -> int | None:
        """The place of the highest digit; None for fractions and numbers in scientific notation."""
        return None if self.form in ("/", "e") else (self.lowest or 0) + sum(map(len, self.digits)) - 1

    @property
    def form(self) -> str:
        """The form of the number: "/" for fractions, "e" for scientific notation, "." for floats, "" for integers."""
        return next((mark for mark in _SEPARATORS if mark in self.separators), "")

    @property
    def lowest(self) -> int | None:
        """The place of the lowest digit of the value; None for fractions, whose two parts have places of their own."""
        if self.form == "/":
            return None
        written = sum(digit * 10**place for place, digit in enumerate(self.digits[0])) if self.form == "e" else 0
        return min(written, _FARTHEST) - (len(self.digits[-2]) if "." in self.separators else 0)

    def spot(self, number: int, form: str, lowest: int, part: int, index: int) -> Spot:
        """The spot of a digit of this number, written or next.

        Args:
            number: which number of the row this is, from 1.
            form: the form that the number is assumed to have; see `form`.
            lowest: the place that its lowest digit is assumed to have; see `lowest`.
            part: the index of the digit's part, in the order of writing.
            index: the index of the digit within its part.
        """
        if form == "/":
            return Spot(number, FRACTION + part, index)
        if form == "e" and part == 0:
            return Spot(number, EXPONENT, index)
        below = sum(map(len, self.digits[form == "e" : part]))
        return Spot(number, VALUE, lowest + below + index)


_FARTHEST = 10**9
"""The largest exponent; larger ones count as this one, so that places fit into a tensor whatever a model writes."""
_SEPARATORS = ("/", "e", ".")
"""The separators of all numbers. The first of these that a number contains is its form."""


class RowSpots(NamedTuple):
    """What `row_spots` finds. The "last tokens" are those that its argument `last` asks for. A spot is a row of three
    integers, as in `Spot`. If rows are stacked, each array has one more dimension in front."""

    following: np.ndarray
    """For each of the last tokens, the spot of the digit that would follow it; NO_SPOT if no answer can begin yet."""
    own: np.ndarray
    """For each token of the row, the spot of its digit; NO_SPOT if it is not a digit."""
    starts: np.ndarray
    """For each of the last tokens, the index of the token with which its number starts; 0 outside numbers."""
    inside: np.ndarray
    """For each token of the row, whether it is part of a number: a digit, or a separator between digits."""
    at: np.ndarray
    """For each of the last tokens, its index in the row."""

    @classmethod
    def stacked(cls, rows: Sequence["RowSpots"]) -> "RowSpots":
        """The spots of several rows, padded on the right with zeros."""
        arrays = zip(*rows, strict=True)
        return cls(*(_stacked(array) for array in arrays))

    def part(self, first: int, end: int) -> "RowSpots":
        """The spots of the row without the tokens from `end` on, where only those from `first` on are queries. These
        must be among the last tokens."""
        skipped = len(self.own) - len(self.at)
        asked, read = slice(first - skipped, end - skipped), slice(end)
        return RowSpots(self.following[asked], self.own[read], self.starts[asked], self.inside[read], self.at[asked])


def _stacked(arrays: Sequence[np.ndarray]) -> np.ndarray:
    longest = max(map(len, arrays))
    found = np.zeros((len(arrays), longest, *arrays[0].shape[1:]), dtype=arrays[0].dtype)
    for row, array in zip(found, arrays, strict=True):
        row[: len(array)] = array
    return found


def row_spots(words: Sequence[str], last: int, ordinary: bool = False, operands: int = 0) -> RowSpots:
    """The spots of the digits of a row of tokens, and of the digits that would follow the last tokens.

    The place of the next digit is known before the digit is written. A number is assumed to start at the lowest place
    of the two numbers before it, and each further digit is one place higher.

    Args:
        words: the texts of the row's tokens, with one digit per token and "" for tokens to ignore.
        last: how many tokens, counted from the end of the row, need the spot of the next digit.
        ordinary: whether numbers are written highest digit first. The number at the end of the row, which is still
            being written, is read lowest digit first in any case.
        operands: how many numbers come before an answer. Tokens with fewer numbers before them get NO_SPOT as the spot
            of the next digit.
    """
    first, start = len(words) - last, _unfinished(words)
    finished = _finished(tuple(words[:start]), ordinary) if first >= start else _NOTHING
    numbers, number = list(finished.numbers), Number()
    following: list[Spot] = []
    starts: list[int] = []
    for token in range(len(finished.inside), len(words)):
        number = _read(token, words[token], number, numbers, ordinary)
        if token >= first:
            following.append(_following(number, numbers) if len(numbers) >= operands else NO_SPOT)
            starts.append(number.tokens[0][0] if number.tokens[0] else 0)
    _, own, inside = _marked([*numbers, number], len(words), finished)
    after, begun = np.array(following, dtype=np.int64).reshape(-1, 3), np.array(starts, dtype=np.int64)
    return RowSpots(after, own, begun, inside, np.arange(first, len(words)))


def row_spots_downward(words: Sequence[str], last: int, operands: int = 0) -> RowSpots:
    """Like `row_spots`, but every number is written highest digit first, so each further digit is one place lower.

    The number at the end of the row is an answer that is still being written, if at least `operands` numbers come
    before it. It begins one place higher than the longer of the last two of these, with a digit for the last carry. In
    other numbers, which are read and not written, a digit counts as its own next digit:

        words       7   8   +   5   =   0   8   3
        own place   1   0       0       2   1   0
        next place  1   0       0   2   1   0  -1

    The places of a question's digits depend on the whole question. Only integers and floats have a next digit.
    """
    start = _unfinished(words)
    question = _finished(tuple(words[:start]), True)
    if len(question.numbers) < max(1, operands):
        start = len(words)
        question = _finished((*words, " "), True)
    own, inside = np.zeros((len(words), 3), dtype=np.int64), np.zeros(len(words), dtype=bool)
    own[:start], inside[:start] = question.own[:start], question.inside[:start]
    place, begun = _above(question.numbers), False
    for token in range(start, len(words)):
        if _is_digit(words[token]):
            own[token], begun = (len(question.numbers) + 1, VALUE, place), True
        inside[token] = begun and bool(words[token])
        place = place - 1 if _is_digit(words[token]) else -1 if inside[token] else place
    at = np.arange(len(words) - last, len(words))
    following = [
        own[token]
        if token < start and own[token, 0]
        else _next_lower(int(token), own, inside, question.numbers, operands)
        for token in at
    ]
    begins = np.flatnonzero(inside & ~np.append(False, inside[:-1]))
    starts = [begins[np.searchsorted(begins, token, "right") - 1] if inside[token] else 0 for token in at]
    return RowSpots(np.array(following).reshape(-1, 3), own, np.array(starts, dtype=np.int64), inside, at)


def _next_lower(
    token: int, own: np.ndarray, inside: np.ndarray, numbers: Sequence[Number], operands: int
) -> Sequence[int]:
    """The spot of the digit that would follow a token of a row that is written highest digit first."""
    number, what, place = own[token]
    if number:
        return (number, what, place - 1) if what == VALUE else NO_SPOT
    before = int(own[: token + 1, 0].max())
    if inside[token]:
        return before, VALUE, -1
    return (before + 1, VALUE, _above(numbers[:before])) if before >= max(1, operands) else NO_SPOT


def _above(numbers: Sequence[Number]) -> int:
    """One place more than the highest place of the last two numbers."""
    return 1 + max((number.highest for number in numbers[-OPERANDS:] if number.highest is not None), default=0)


class _Finished(NamedTuple):
    """What is known of the beginning of a row, up to the end of a finished number or a word that is in no number."""

    numbers: Sequence[Number]
    own: np.ndarray
    inside: np.ndarray


_NOTHING = _Finished((), np.zeros((0, 3)), np.zeros(0))


def _unfinished(words: Sequence[str]) -> int:
    """The first index at which the number at the end of a row can begin: after the last word that is in no number."""
    start = len(words)
    while start and (not words[start - 1] or in_number(words[start - 1])):
        start -= 1
    return start


@lru_cache(maxsize=1024)
def _finished(words: tuple[str, ...], ordinary: bool) -> _Finished:
    """The numbers of the beginning of a row. While a model writes an answer, the words before it stay the same, so they
    are read only once, if a batch has at most 1,024 rows."""
    numbers, number = [], Number()
    for token, word in enumerate(words):
        number = _read(token, word, number, numbers, ordinary)
    return _marked(numbers, len(words), _NOTHING)


def _read(token: int, word: str, number: Number, numbers: list[Number], ordinary: bool) -> Number:
    """Reads the next word of a row, and returns the number that is unfinished after it. A word that ends `number` moves
    it to `numbers`."""
    if _is_digit(word) or (word in _SEPARATORS and number.tokens[0]):
        number.take(token, word)
    elif word and number.tokens[0]:
        numbers.append(number.end().turned() if ordinary else number.end())
        return Number()
    return number


def _is_digit(word: str) -> bool:
    return word.isascii() and word.isdigit()


def in_number(word: str) -> bool:
    """Whether a word may be part of a number: a digit, a separator, or "", which is ignored."""
    return not word or _is_digit(word) or word in _SEPARATORS


def _marked(numbers: Sequence[Number], length: int, known: _Finished) -> _Finished:
    """The numbers of the first `length` tokens of a row. `known`: what is known of the first of these tokens."""
    own, inside = np.zeros((length, 3), dtype=np.int64), np.zeros(length, dtype=bool)
    own[: len(known.own)], inside[: len(known.inside)] = known.own, known.inside
    for count, number in enumerate(numbers[len(known.numbers) :], len(known.numbers) + 1):
        form, lowest = number.form, number.lowest or 0
        for part, tokens in enumerate(number.tokens):
            _, what, place = number.spot(count, form, lowest, part, 0)
            own[tokens, 0], own[tokens, 1], own[tokens, 2] = count, what, place + np.arange(len(tokens))
        tokens = [token for part in number.tokens for token in part]
        inside[min(tokens, default=0) : max(tokens, default=-1) + 1] = True
    return _Finished(numbers, own, inside)


def _following(number: Number, before: Sequence[Number]) -> Spot:
    """The spot of the next digit of a number.

    What the number does not show yet is taken from the numbers before it: its lowest place from the last two, and its
    form, as long as it has no separator, from the last one.
    """
    known = [other.lowest for other in before[-OPERANDS:] if other.lowest is not None]
    form = number.form if number.separators or not before else before[-1].form
    part = len(number.digits) - 1
    return number.spot(len(before) + 1, form, min(known, default=0), part, len(number.digits[part]))
