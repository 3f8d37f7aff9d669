"""How numbers are written: in what order and with what beside their digits, and how digits become tokens. No torch."""

from typing import Literal

from pydantic import Field

from lab.config.schema import Section


class TokenizerConfig(Section):
    """How the digits of a part of a number become tokens (Number Cookbook, section 3.1)."""

    kind: Literal["aligned", "left", "mixed", "random"] = "aligned"
    """aligned: groups of `digits` counted from the ones digit, or from the point in decimals. left: counted from the
    left of every part as it is written. mixed: byte-pair merges of one to `digits` digits, as irregular as GPT-2's.
    random: groups of one to `digits`, drawn anew each time that a sample is seen."""
    digits: int = Field(default=1, ge=1, le=4)
    """Of a group at most; the vocabulary has all strings of so many digits."""


class FormatConfig(Section):
    """How a number is written before it is cut into tokens (section 3.3)."""

    reverse: Literal["none", "integer", "decimal", "each", "total", "answer"] = "none"
    """integer: integer parts, numerators, denominators and exponents least significant digit first. decimal: decimals.
    each: both. total: the whole number from its end, so that its parts change places too. answer: the answer alone,
    wholly; the question's numbers are written as ever."""
    pad: Literal["none", "operands", "all"] = "none"
    """operands: parts of both operands to the longer one's digits, with zeros; all: those of the answer too."""
    index_hints: Literal["none", "question", "both"] = "none"
    """A token with the place before each group of digits (Zhou et al. 2024), in the question or in the answer too."""
    largest_hint: int = Field(default=32, ge=1)
    """Places are below this; while training, the places of a problem begin anywhere from 0 up that keeps them so."""

    def check_that_places_agree(self, key: str) -> None:
        """Raises ValueError, for the config's `key`, where like places of two numbers are unlike ones as written."""
        if self.reverse in ("none", "decimal", "answer") and self.pad == "none":
            what = f"{key} counts digits as they are written, so digits of one place only agree"
            raise ValueError(f"{what} with format.reverse=integer, each or total, or with format.pad")
