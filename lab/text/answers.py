"""The answer in what a model wrote: two readings, reported as two figures.

strict  the completion, stripped, must start with the answer (the released code's reading)
loose   the first match anywhere (the paper's reading, A.2)

A match is as long as the grammar allows. Digits are ASCII; a signed exponent is not in the grammar, so 1.5e-8 is no
scientific number (the released code drops the sign). What else a wording looks at, such as the words "The answer is",
it says itself (lab/text/wording.py).
"""

import functools
from typing import Literal

from lab.numbers.representations import Representation
from lab.text.number_search import NumberSearch

Setting = Literal["base", "chat", "api", "rule_following"]

Reading = Literal["strict", "loose"]
READINGS: tuple[Reading, ...] = ("strict", "loose")


def extract(text: str, representation: Representation, reading: Reading) -> str | None:
    """The answer as written, or None if there is none."""
    if reading == "strict":
        match = representation.pattern.match(text.strip())
    else:
        match = _anywhere(representation).search(text)
    return match.group() if match else None


def decided(text: str, representation: Representation) -> bool:
    """Whether nothing that could follow changes either reading: an answer has come, and something after it."""
    text, _ = without_thoughts(text)
    match = _anywhere(representation).search(text)
    return match is not None and match.end() < len(text)


def without_thoughts(text: str) -> tuple[str, str]:
    """The text after the thoughts that it begins with, and those thoughts; thoughts that never end take it all.

    Many chat templates open the thoughts themselves, so that only </think> is in the text.
    """
    before, closed, after = text.partition("</think>")
    opened = before.lstrip().startswith("<think>")
    if not opened and not (closed and "<think>" not in before):
        return text, ""
    return after, before.lstrip().removeprefix("<think>")


@functools.cache
def _anywhere(representation: Representation) -> NumberSearch:
    return NumberSearch("[0-9]", representation.pattern.pattern.removeprefix("[0-9]+"))
