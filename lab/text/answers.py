"""Extracts the answer from what a model wrote. There are two readings, whose scores are reported separately.

strict  the completion, stripped of white space, must start with the answer (the reading of the released code)
loose   the first match anywhere in the completion counts (the reading of the paper, A.2)

A match is as long as the grammar allows. Digits are ASCII. The grammar has no signed exponents, so 1.5e-8 is not a
scientific number (the released code drops the sign). A wording may look for words before the answer, such as "The
answer is" (lab/text/wording.py).
"""

import functools
from typing import Literal

from lab.numbers.representations import Representation
from lab.text.number_search import NumberSearch

Setting = Literal["base", "chat", "api", "rule_following"]

ReadingName = Literal["strict", "loose"]
READINGS: tuple[ReadingName, ...] = ("strict", "loose")


def extract(text: str, representation: Representation, reading: ReadingName) -> str | None:
    """The answer as the model wrote it, or None if there is none.

    Args:
        text: what the model wrote.
        representation: the representation of the answer.
        reading: "strict" or "loose".
    """
    if reading == "strict":
        match = representation.pattern.match(text.strip())
    else:
        match = _anywhere(representation).search(text)
    return match.group() if match else None


def decided(text: str, representation: Representation) -> bool:
    """Whether no further text can change either reading: the text contains an answer and continues after it.

    There is one exception: a later </think> makes everything before it thoughts (`without_thoughts`).
    """
    text, _ = without_thoughts(text)
    match = _anywhere(representation).search(text)
    return match is not None and match.end() < len(text)


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


@functools.cache
def _anywhere(representation: Representation) -> NumberSearch:
    return NumberSearch("[0-9]", representation.pattern.pattern.removeprefix("[0-9]+"))
