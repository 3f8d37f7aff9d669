"""Scores answers as evalchemy and MarinSkyRL do, for NUPA, NUPA5K and the -Loose tasks.

Their rules are more lenient than the lab's in some ways and stricter in others:

    reading  direct: an answer stands at the beginning of the text, perhaps after the words "the answer is".
             loose: an answer at the end counts first: in a box, in inline math, after "=", or after a word such as
             "answer". If there is none, the direct reading applies, and if that fails, the last line may be the answer.
             The thoughts of a model, up to <|end_think|>, are not part of the text.
    signs    the sign of an exponent is dropped, so 1.5e-8 is right if 1.5e8 is.
    dlength  the difference between the total numbers of digits, so it is 0 for 123/456 and 12/3456. The lab, like the
             paper, adds up the differences of the parts, which gives 2.

Their public sources: eval/chat_benchmarks/NUPA/scorer.py at 7d62b1b (direct) and NUPA-Loose/scorer.py at 7d753d2
(loose) in marin-community/evalchemy, and skyrl_gym/envs/nupa in marin-community/MarinSkyRL (loose).
"""

import re
from collections.abc import Iterator
from operator import eq
from typing import Literal, NamedTuple

from lab.errors import TaskError
from lab.numbers.representations import Float, Fraction, Integer, Representation, Scientific

FORMATS: dict[str, Representation] = {
    "Integer": Integer,
    "Float": Float,
    "Fraction": Fraction,
    "ScientificNotation": Scientific,
}

# \d matches every decimal digit of Unicode, as in their code: a digit that is not ASCII is read, but counts as wrong
_NUMBERS = {
    "Integer": re.compile(r"\d+"),
    "Float": re.compile(r"\d+\.\d+"),
    "Fraction": re.compile(r"\d+/\d+"),
    "ScientificNotation": re.compile(r"\d+\.\d+[eE][+-]?\d+"),
}
_PUNCTUATION = " \t\r\n.,;:!?$"
_ANNOUNCED = re.compile(r"(?:so\s+)?the\s+answer\s+is\s+", re.IGNORECASE)
_BOXED = re.compile(r"\\boxed\{([^{}]+)\}")
_IN_MATH = re.compile(r"\\\(([^()]*)\\\)")
_AFTER_EQUALS = re.compile(r"=\s*([^\s=]+)\s*$")
_AFTER_A_WORD = re.compile(
    r"""(?:^|\n) \s* (?:(?:so|therefore|thus)[,\ ]+)? (?:the\s+)? (?:final\s+)?
    (?:answer|result|output) \s* (?:is\s*)? [:=]? \s* (\S+) \s* \Z""",
    re.IGNORECASE | re.VERBOSE,
)


class Verdict(NamedTuple):
    """The five figures of evalchemy for one answer. MarinSkyRL's reward is the first."""

    exact_match: float
    digit_match: float
    dlength: float
    format_valid: float
    no_answer: float


def verdict(text: str | None, truth: str, answer_format: str, reading: Literal["direct", "loose"] = "loose") -> Verdict:
    """Scores what a model wrote.

    Args:
        text: what the model wrote; None if there is nothing.
        truth: the right answer.
        answer_format: Integer, Float, Fraction or ScientificNotation.
        reading: direct for the first versions of evalchemy's NUPA and NUPA5K, loose for today's and for MarinSkyRL.

    Raises TaskError if there is no such format or if the truth does not have it.
    """
    if answer_format not in FORMATS or not _NUMBERS[answer_format].fullmatch(truth):
        raise TaskError(f"{truth!r} is not an answer in the format {answer_format}; formats are {', '.join(FORMATS)}")
    given = extract(text, answer_format, reading)
    wanted, parts = _parts(truth), _parts(given) if given else [""] * len(_parts(truth))
    digits = sum(map(len, wanted))
    sides = FORMATS[answer_format].alignment
    right = sum(_agreeing(*each) for each in zip(parts, wanted, sides, strict=True))
    read = float(given is not None)
    return Verdict(float(parts == wanted), right / digits, float(abs(sum(map(len, parts)) - digits)), read, 1 - read)


def extract(text: str | None, answer_format: str, reading: Literal["direct", "loose"] = "loose") -> str | None:
    """The answer in a text, without the signs of exponents and with a small e; None if there is none."""
    number = _NUMBERS[answer_format]
    if text is None:
        return None
    if reading == "loose":
        text = text.rpartition("<|end_think|>")[2]
        if "<|start_think|>" in text:
            return None
    text = text.strip()
    found = next((item for item in _at_the_end(text) if number.fullmatch(item)), None) if reading == "loose" else None
    if found is None:
        announced = _ANNOUNCED.match(text)
        first = number.match(text, announced.end() if announced else 0)
        found = first.group() if first else _last_line(text, number) if reading == "loose" else None
    return found and re.sub("[+-]", "", found).replace("E", "e")


def _at_the_end(text: str) -> Iterator[str]:
    """What may be an answer at the end of a text, in the order in which both projects look for it."""
    text = text.rstrip(_PUNCTUATION)
    for pattern in (_BOXED, _IN_MATH):
        *_, last = None, *pattern.finditer(text)
        if last and not text[last.end() :].strip(_PUNCTUATION + "\\)"):
            yield last[1].strip()
    for pattern in (_AFTER_EQUALS, _AFTER_A_WORD):
        if found := pattern.search(text):
            yield found[1]


def _last_line(text: str, number: re.Pattern[str]) -> str | None:
    lines = text.rstrip(_PUNCTUATION).splitlines() or [""]
    return lines[-1].strip() if number.fullmatch(lines[-1].strip()) else None


def _parts(answer: str) -> list[str]:
    return [re.sub("[+-]", "", part) for part in re.split("[./eE]", answer)]


def _agreeing(given: str, wanted: str, side: str) -> int:
    return sum(map(eq, given, wanted) if side == "left" else map(eq, given[::-1], wanted[::-1]))
