r"""The number that a response ends on, however it is written: the third reading of a sum, `final`.

It is the number in the last \boxed{...}; if there is none, in the last bold **...** that holds a number and no more;
if there is neither, the last number of the response. Separators of thousands are read, so that 1,012,915,637 is one
number and not four: in a box or in bold wherever they stand, elsewhere before groups of three digits, the same between
all groups. A number that is not written as an integer, such as 1.5 or 2e9, is none; 15.0 is 15.

The last of something is the first of it in the reversed text, and is looked for there: a search from the start would
go through all the others.
"""

import re

from lab.numbers.taxonomy import INTEGER

_DIGIT = re.compile("[0-9]")
_SEPARATOR = "[ \u00a0\u2009\u202f,\uff0c_'\u2019]"
_LATEX_SEPARATOR = r"[!,:;]\\"
"""Backwards, as all that follows: \\, and its like."""
_GROUPED = rf"[0-9]{{3}}(?P<by>{_SEPARATOR}|{_LATEX_SEPARATOR})(?:[0-9]{{3}}(?P=by))*[0-9]{{1,3}}(?![0-9]|(?P=by)[0-9])"
_NUMBER = re.compile(
    r"(?P<exponent>[0-9]+[+-]?[eE](?=[0-9]))?"
    r"(?:(?P<decimals>[0-9]+)\.(?=[0-9]))?"
    rf"(?P<integer>(?:{_GROUPED}|[0-9]+)(?:[+-](?![0-9A-Za-z]))?)"
)
_BOLD = re.compile(rf"(?<![*0-9])\*\*(\.?[0-9](?:[0-9.]|{_SEPARATOR}|{_LATEX_SEPARATOR})*+[+-]?)\*\*(?![*0-9])")
_LAYOUT = re.compile(rf"\\[!,:;]|{_SEPARATOR}")


def final_number(text: str) -> str | None:
    """An ASCII integer without separators, or None if the response ends on no integer."""
    text = text.replace("{,}", ",")  # how LaTeX writes a comma between digits
    place = marked(text)
    if place is not None and INTEGER.fullmatch(whole := _LAYOUT.sub("", place)):
        return whole
    backwards = (place or text)[::-1]
    last_digit = _DIGIT.search(backwards)
    found = last_digit and _NUMBER.match(backwards, last_digit.start())
    if not found or found["exponent"] or (found["decimals"] or "").strip("0"):
        return None
    return _LAYOUT.sub("", found["integer"][::-1])


def marked(text: str) -> str | None:
    r"""What the last \boxed{...} holds, or the last bold number; None if there is no number in either."""
    box = last_box(text)
    if box is not None and _DIGIT.search(box):
        return box
    bold = _BOLD.search(text[::-1])
    return bold and bold[1][::-1]


def last_box(text: str) -> str | None:
    r"""What the last \boxed{...} holds; it ends at the first closing brace, and one that is never closed is none."""
    opening = r"\boxed{"
    start = text.rfind(opening, 0, max(0, text.rfind("}")))
    return None if start < 0 else text[start + len(opening) : text.index("}", start)]
