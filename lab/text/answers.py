"""The answer in what a model wrote: two readings, reported as two figures.

strict  the completion, stripped, must start with the answer (the released code's reading)
loose   the first match anywhere (the paper's reading, A.2)

A chat model answers in a message of its own, without the prompt's "=" before it. There the strict reading begins after
"The answer is", where the paper's system message asks for those words, and the loose one after them or after the first
"=", where there are any, since "12 + 30 = 42" answers 42.

Who follows a rule ends with "So the answer is": there the answer must follow those words at once in the strict reading,
and somewhere after them in the loose one. Without them no number of the working is an answer.

A match is as long as the grammar allows. Digits are ASCII; a signed exponent is not of the grammar, so 1.5e-8 is no
scientific number (the released code drops the sign).
"""

import functools
import re
from typing import Literal

from lab.numbers.representations import Representation
from lab.text.number_search import NumberSearch
from lab.text.rule_following import ANSWER

Setting = Literal["base", "chat", "api", "rule_following"]

Reading = Literal["strict", "loose"]
READINGS: tuple[Reading, ...] = ("strict", "loose")

_ANNOUNCED = re.compile("the answer is:?", re.IGNORECASE)


def extract(text: str, representation: Representation, reading: Reading, setting: Setting = "base") -> str | None:
    """The answer as written, or None where there is none."""
    if setting == "rule_following":
        _, ended, text = text.partition(ANSWER)
        if not ended:
            return None
        setting = "base"
    announced = _ANNOUNCED.search(text) if setting != "base" else None
    if announced and (setting == "api" or reading == "loose"):
        text = text[announced.end() :]
    elif setting != "base" and reading == "loose" and "=" in text:
        text = text.partition("=")[2]
    match = (
        representation.pattern.match(text.strip()) if reading == "strict" else _anywhere(representation).search(text)
    )
    return match.group() if match else None


def decided(text: str, representation: Representation, setting: Setting = "base") -> bool:
    """Whether nothing that could follow changes either reading of a text that the prompt's "=", or a rule, precedes.

    An answer has come, and something after it.
    """
    if setting == "rule_following":
        text = text.partition(ANSWER)[2]
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
