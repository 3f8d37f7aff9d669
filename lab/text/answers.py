"""Extracts the answer from what a model wrote. There are four readings, whose scores are reported separately.

strict    the completion, stripped of white space, must start with the answer
loose     the first answer anywhere in the completion counts (the reading of the paper, A.2)
final     the number that the completion ends with, however it is written (lab/text/final_number.py)
released  the reading of the paper's released code: as strict, but what follows the answer may be joined to it, so 5.5
          and 5,000 answer 5; an exponent may have a capital E and a sign, which is dropped, so 1.5e-8 answers 1.5e8

The first three take a number whole or not at all (lab/text/written_numbers.py). In the first two, an answer is written
as the grammar says: ASCII digits, no separators, no signs. Raw text that a model continues is read by `final` and
`released` up to the end of the first line with a number, where the model has answered. A wording may look for words
before the answer, such as "The answer is" (lab/text/wording.py).
"""

import re
from typing import Literal

from lab.numbers.representations import Float, Fraction, Integer, Representation, Scientific
from lab.text.final_number import final
from lab.text.written_numbers import at_start, first

Setting = Literal["base", "chat", "api", "rule_following"]

ReadingName = Literal["strict", "loose", "final", "released"]
READINGS: tuple[ReadingName, ...] = ("strict", "loose")
"""The readings that every benchmark and every run has."""
ALL_READINGS: tuple[ReadingName, ...] = (*READINGS, "final", "released")
"""Those of NUPA, in the order in which they are shown."""

_RELEASED: dict[Representation, re.Pattern[str]] = {
    Integer: re.compile(r"\d+"),
    Float: re.compile(r"\d+\.\d+"),
    Fraction: re.compile(r"\d+/\d+"),
    Scientific: re.compile(r"\d+\.\d+[eE][+-]?\d+"),
}


def extract(text: str, representation: Representation, reading: ReadingName) -> str | None:
    """The answer in the grammar of its representation, or None if there is none.

    Args:
        text: what the model wrote.
        representation: the representation of the answer.
        reading: one of ALL_READINGS.
    """
    match reading:
        case "strict":
            return at_start(text.strip(), representation.pattern.pattern)
        case "loose":
            return first(text, representation.pattern.pattern)
        case "final":
            number = final(text)
            return number and number.as_answer(representation)
        case "released":
            return _released(text.strip(), representation)


def _released(text: str, representation: Representation) -> str | None:
    """Digits of other scripts are read there, too, but are never right; here, they are no answer."""
    found = _RELEASED[representation].match(text)
    answer = found and re.sub("[+-]", "", found.group()).replace("E", "e")
    return answer if answer and answer.isascii() else None


def answering_line(text: str) -> str:
    """The text up to the end of its first line with a digit; the whole text if there is no such line."""
    found = _ANSWERING_LINE.match(text)
    return found.group() if found else text


_ANSWERING_LINE = re.compile(r"[^0-9]*+[0-9][^\n]*+")


def decided(text: str, representation: Representation) -> bool:
    """Whether no further text can change any reading: the line with the answer has ended.

    There is one exception: a later </think> makes everything before it thoughts (`without_thoughts`).
    """
    text, _ = without_thoughts(text)
    before, ended, _ = text.rpartition("\n")
    return bool(ended) and first(before, representation.pattern.pattern) is not None


def without_thoughts(text: str) -> tuple[str, str]:
    """Splits a text into (the response, the thoughts before it).

    If the thoughts never end, the whole text is thoughts. Many chat templates write <think> themselves, so the text may
    contain only </think>.
    """
    before, closed, after = text.partition("</think>")
    opened = before.lstrip().startswith("<think>")
    if not opened and not (closed and "<think>" not in before):
        return text, ""
    return after, before.lstrip().removeprefix("<think>")
