"""How numbers are written and how their digits become tokens. Does not import torch."""

from typing import Literal, Self

from pydantic import Field, model_validator

from lab.config.schema import Section


class TokenizerConfig(Section):
    """How the digits of each part of a number become tokens (Number Cookbook, section 3.1)."""

    kind: Literal["aligned", "left", "mixed", "random"] = "aligned"
    """aligned: groups of `digits` digits, counted from the ones digit (in decimals, from the point). left: groups
    counted from the left end of each part as it is written. mixed: byte-pair merges of one to `digits` digits, as
    irregular as GPT-2's. random: groups of one to `digits` digits, drawn anew each time a sample is seen."""
    digits: int = Field(default=1, ge=1, le=4)
    """The largest number of digits in a group. The vocabulary has all strings of up to this many digits."""


class FormatConfig(Section):
    """How a number is written before it is split into tokens (section 3.3)."""

    reverse: Literal["none", "integer", "decimal", "each", "total", "answer"] = "none"
    """What is written least significant digit first. integer: integer parts, numerators, denominators and exponents.
    decimal: the digits after the point. each: both of these. total: the whole number from its end, so that its parts
    swap places too. answer: like total, but for the answer only."""
    pad: Literal["none", "operands", "answer", "all"] = "none"
    """What is padded with zeros. operands: each part of an operand, to the number of digits that this part has in the
    longer operand. answer: each part of the answer, to the same number. all: both."""
    carry_place: bool = False
    """With pad=answer or all: pad the integer part of the answer by one more digit, which leaves room for a last carry.
    The first digit of every answer is then one place above the highest digit of the operands."""
    index_hints: Literal["none", "question", "both"] = "none"
    """Put a token that names the place before each group of digits (Zhou et al. 2024): only in the question, or also in
    the answer."""
    largest_hint: int = Field(default=32, ge=1)
    """How many places have hints; they are numbered from 0. In training, the places of each problem are shifted by a
    random amount that keeps them in this range."""

    @model_validator(mode="after")
    def _carry_place_of_padded_answers(self) -> Self:
        if self.carry_place and self.pad not in ("answer", "all"):
            raise ValueError(f"carry_place needs pad=answer or all, not {self.pad}")
        return self

    def check_that_places_agree(self, key: str) -> None:
        """Raises ValueError, for the config's `key`, if digits of the same place get different counts in two numbers.

        Position schemes count digits in the order in which they are written. Without padding, the count tells the place
        only if the lowest digit comes first.
        """
        if self.reverse in ("none", "decimal", "answer") and self.pad in ("none", "answer"):
            what = f"{key} counts digits as they are written, so digits of the same place only get the same count"
            raise ValueError(f"{what} with format.reverse=integer, each or total, or with format.pad")
