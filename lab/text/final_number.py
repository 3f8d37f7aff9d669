r"""The number that a message ends with, however it is written: `final`, the third reading.

It is the number in the last \boxed{...}. If there is no box, it is the last bold **...** that is only a number; if
there is neither, it is the last number of the message. It is whole, or there is none (lab/text/written_numbers.py):
"12 + 30 = 42." ends with 42, and "It takes 5 days, until 12:30" with no number.
"""

import re

from lab.text.written_numbers import Written, last

_BOX = r"\boxed{"
_BRACES = r"[^{}]*+"
for _ in range(4):
    _BRACES = rf"(?:[^{{}}]++|\{{{_BRACES}\}})*+"
_CONTENT = re.compile(rf"({_BRACES})\}}")
_DIGIT = re.compile("[0-9]")
_BOLD = re.compile(
    r"\*\*(?<![*0-9]\*\*)(?=[^*\n ][^*\n]*+)(?=[^0-9*\n]*+[0-9])"
    r"((?:[^A-Za-z*\n]++|[eExX]|(?:carf[dtc]?|semit|todc)\\)++(?<! ))\*\*(?![*0-9])"
)
"""For the reversed text: bold without words. (A search for fixed characters is fast, so they come first.)"""


def final(text: str) -> Written | None:
    """The final number of a message; None if it does not end with a whole number."""
    return last(marked(text) or text)


def marked(text: str) -> str | None:
    r"""The content of the last \boxed{...}, or the last bold number; None if there is no number in either."""
    box = last_box(text)
    if box is not None and _DIGIT.search(box):
        return box
    return next((bold for found in _BOLD.finditer(text[::-1]) if last(bold := found[1][::-1])), None)


def last_box(text: str) -> str | None:
    r"""The content of the last \boxed{...}; a box that is not closed does not count."""
    start = text.rfind(_BOX, 0, max(0, text.rfind("}")))
    while start >= 0:
        if content := _CONTENT.match(text, start + len(_BOX)):
            return content[1]
        start = text.rfind(_BOX, 0, start)
    return None
