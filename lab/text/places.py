"""Which place a digit of a written number has: the power of ten that it counts.

    4321 + 98 = 3231       integers, lowest digit first: 4 and 9 have place 0, 3 and 8 place 1
    57.321                 123.75: 5 has place -2, 1 has place 2
    24e25.6                6.52e42: the 6 has place 42; the digits of an exponent have places of their own
    31/7                   7/13: so have the two parts of a fraction

`place_values` reads a number of a problem, as people write it. `row_spots` reads a row of tokens, in which numbers may
be mixed with text and the last one may be unfinished.
"""

from collections.abc import Sequence
from typing import NamedTuple

from lab.numbers.representations import Fraction, Representation, Scientific, split_parts

OPERANDS = 2
"""How many numbers before it decide where a number starts."""
VALUE, EXPONENT, FRACTION = 1, 2, 3
"""What a digit belongs to. The part of a fraction that is written second has FRACTION + 1."""


class Spot(NamedTuple):
    """Where a digit is: in which number of its row (from 1), in which component of it, and at which place there."""

    number: int
    what: int
    place: int


NO_SPOT = Spot(0, 0, 0)


class Number:
    """A number as far as it is written, lowest digit first: 4321 (1234), 57.321 (123.75), 24e25.6 (6.52e42), 31/7."""

    def __init__(self) -> None:
        self.separators = ""
        self.digits: list[list[int]] = [[]]
        """The digits of each part."""
        self.tokens: list[list[int]] = [[]]

    def take(self, token: int, word: str) -> None:
        if word in _SEPARATORS:
            self.separators += word
            self.digits.append([])
            self.tokens.append([])
        else:
            self.digits[-1].append(int(word))
            self.tokens[-1].append(token)

    def end(self) -> "Number":
        """The number without a separator after its last digit, which is punctuation and not part of the number."""
        if not self.digits[-1]:
            self.separators, self.digits, self.tokens = self.separators[:-1], self.digits[:-1], self.tokens[:-1]
        return self

    def turned(self) -> "Number":
        """The same number with its lowest digit first."""
        self.separators = self.separators[::-1]
        self.digits = [part[::-1] for part in reversed(self.digits)]
        self.tokens = [part[::-1] for part in reversed(self.tokens)]
        return self

    @property
    def form(self) -> str:
        """The separator that tells the form of a number; empty for integers."""
        return next((mark for mark in _SEPARATORS if mark in self.separators), "")

    @property
    def lowest(self) -> int | None:
        """The place of the lowest digit; None for fractions, whose parts do not share places."""
        if self.form == "/":
            return None
        exponent = sum(digit * 10**place for place, digit in enumerate(self.digits[0])) if self.form == "e" else 0
        return exponent - (len(self.digits[-2]) if "." in self.separators else 0)

    def spot(self, number: int, form: str, lowest: int, part: int, index: int) -> Spot:
        """The spot of digit `index` of a part, in a number of this form whose lowest digit has the place `lowest`."""
        if form == "/":
            return Spot(number, FRACTION + part, index)
        if form == "e" and part == 0:
            return Spot(number, EXPONENT, index)
        below = sum(map(len, self.digits[form == "e" : part]))
        return Spot(number, VALUE, lowest + below + index)


_SEPARATORS = "/e."
"""The first of these that a number contains tells its form."""


class RowSpots(NamedTuple):
    following: list[Spot]
    """For each of the last tokens, the spot of the digit that would be written next."""
    own: list[Spot]
    """The spot of each token; NO_SPOT for text."""
    starts: list[int]
    """For each of the last tokens that is part of an answer, the token with which the answer starts; otherwise 0."""
    inside: list[bool]
    """For each token, whether it is part of a number: a digit, or a separator between digits."""


def row_spots(words: Sequence[str], last: int, ordinary: bool = False, operands: int = 0) -> RowSpots:
    """The spots of the digits of a row of tokens.

    The place of the next digit is known before it is written: a number starts at the place of the lowest digit of the
    two numbers before it, and each digit is one place higher.

    Args:
        words: the tokens of the row, one digit a word, with "" for tokens to ignore.
        last: for how many of the last tokens the spot of the next digit is wanted.
        ordinary: whether numbers are written highest digit first, except the one that is being written.
        operands: how many numbers an answer needs before it. Tokens with fewer have no spot of a next digit.
    """
    numbers: list[Number] = []
    following: list[Spot] = []
    starts: list[int] = []
    number = Number()
    for token, word in enumerate(words):
        if (word.isascii() and word.isdigit()) or (word in _SEPARATORS and word and number.tokens[0]):
            number.take(token, word)
        elif word and number.tokens[0]:
            numbers.append(number.end().turned() if ordinary else number.end())
            number = Number()
        if token >= len(words) - last:
            follows = len(numbers) >= operands
            following.append(_following(number, numbers) if follows else NO_SPOT)
            starts.append(number.tokens[0][0] if follows and number.tokens[0] else 0)
    own, inside = [NO_SPOT] * len(words), [False] * len(words)
    for count, done in enumerate([*numbers, number], 1):
        form, lowest = done.form, done.lowest or 0
        for part, tokens in enumerate(done.tokens):
            _, what, place = done.spot(count, form, lowest, part, 0)
            for token in tokens:
                own[token] = Spot(count, what, place)
                place += 1
        tokens = [token for part in done.tokens for token in part]
        for token in range(min(tokens, default=0), max(tokens, default=-1) + 1):
            inside[token] = True
    return RowSpots(following, own, starts, inside)


def _following(number: Number, before: Sequence[Number]) -> Spot:
    """The spot of the next digit of a number. What is not written yet is assumed to be as in the numbers before."""
    known = [other.lowest for other in before[-OPERANDS:] if other.lowest is not None]
    form = number.form if number.separators or not before else before[-1].form
    part = len(number.digits) - 1
    return number.spot(len(before) + 1, form, min(known, default=0), part, len(number.digits[part]))


def place_values(number: str, representation: Representation) -> list[int | None]:
    """The power of ten that each character of `number` counts; None for characters that are not digits of its value."""
    if representation is Fraction:
        return [None] * len(number)
    parts = split_parts(number, representation)
    shift = int(parts[2]) if representation is Scientific else 0
    values: list[int | None] = [shift + place for place in reversed(range(len(parts[0])))]
    if len(parts) > 1:
        values += [None, *(shift - 1 - place for place in range(len(parts[1])))]
    return values + [None] * (len(number) - len(values))
