r"""The number that a response ends with, however it is written: `final`, the third reading of a sum.

It is the number in the last \boxed{...}. If there is no box, it is the number in the last bold **...** that contains
only a number; if there is neither, it is the last number of the response. Thousands separators are understood, so that
1,012,915,637 is one number and not four. In a box or in bold they may stand anywhere; elsewhere they must precede
groups of three digits and be the same between all groups. A number that is not written as an integer, such as 1.5 or
2e9, does not count; 15.0 is 15.

Patterns are matched against the reversed text, where the last match comes first. A search from the start would have to
go through all other matches.
"""

import re

from lab.numbers.taxonomy import INTEGER

_DIGIT = re.compile("[0-9]")
_SEPARATOR = "[ \u00a0\u2009\u202f,\uff0c_'\u2019]"
_LATEX_SEPARATOR = r"[!,:;]\\"
"""Reversed, like all patterns below: \\, and similar."""
_GROUPED = rf"[0-9]{{3}}(?P<by>{_SEPARATOR}|{_LATEX_SEPARATOR})(?:[0-9]{{3}}(?P=by))*[0-9]{{1,3}}(?![0-9]|(?P=by)[0-9])"
_NUMBER = re.compile(
    r"(?P<exponent>[0-9]+[+-]?[eE](?=[0-9]))?"
    r"(?:(?P<decimals>[0-9]+)\.(?=[0-9]))?"
    rf"(?P<integer>(?:{_GROUPED}|[0-9]+)(?:[+-](?![0-9A-Za-z]))?)"
)
_BOLD = re.compile(rf"(?<![*0-9])\*\*(\.?[0-9](?:[0-9.]|{_SEPARATOR}|{_LATEX_SEPARATOR})*+[+-]?)\*\*(?![*0-9])")
_LAYOUT = re.compile(rf"\\[!,:;]|{_SEPARATOR}")


def final_number(text: str) -> str | None:
    """The final number as an ASCII integer without separators; None if the response does not end with an integer."""
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
    r"""The content of the last \boxed{...}, or the last bold number; None if there is no number in either."""
    box = last_box(text)
    if box is not None and _DIGIT.search(box):
        return box
    bold = _BOLD.search(text[::-1])
    return bold and bold[1][::-1]


def last_box(text: str) -> str | None:
    r"""The content of the last \boxed{...}, up to the first closing brace; a box that is not closed does not count."""
    opening = r"\boxed{"
    start = text.rfind(opening, 0, max(0, text.rfind("}")))
    return None if start < 0 else text[start + len(opening) : text.index("}", start)]
