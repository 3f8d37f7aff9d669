r"""Reads the numbers in a text, however they are written: each whole, or not at all.

    groups       1,234,567   1 234 567 (also with no-break and thin spaces)   1'234'567   1_234_567   1{,}234   1\,234
                 12,34,567 (India)   12,3456,7890 (China)   1.234.000, which can be nothing else
    decimals     12.5   .5   1,234.5   with a decimal comma: 12,5   0,125   1.234,5
    exponent     1.5e8   1.5E+8   1.5 x 10^8   1.5 \times 10^{8}   1.5*10**8   1.5·10⁸   10^8
    fraction     3/4   3 / 4   \frac{3}{4}   \dfrac{3}{4}   2 3/4   2\frac{3}{4}
    sign         - or + or a dash (U+2010 to U+2013, U+2212, U+FF0D) that touches the number and nothing before it

As in English, 1.234 is a decimal and 1,234 is an integer. What is joined to anything else is no number, and none of its
parts is one: there is no 5 in 5th, x5, 5x, 5-3, 12:30, 2024-05-01, 5%, 5 million, 10^5 or minus 5. A point, a comma or
a bracket that no digit follows ends a number. No number goes on in the next line.

Reading takes time in proportion to the text: where a number may begin depends on a few characters before it, all
repetitions are possessive, and the last number is sought in longer and longer ends of the text.
"""

import functools
import re
from collections import deque
from typing import NamedTuple

from lab.numbers.representations import Float, Fraction, Integer, Representation

_SIGN = "-+\u2010\u2011\u2012\u2013\u2212\uff0d"
_SPACE = " \u00a0"
_THIN = "\u2006\u2007\u2008\u2009\u200a\u202f"
_LETTER = (
    r"[0-9A-Za-z_\u00aa\u00b2\u00b3\u00b5\u00b9\u00ba\u00bc-\u00be\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u0600\u0620-\u0669"
    r"\u066e-\u06d3\u0700-\u0963\u0966-\u0dff\u0f00-\u0fff\u10a0-\u1fff\u2070-\u209c\u2150-\u218b\u2c00-\u2dff"
    r"\u0e50-\u0e59\u0ed0-\u0ed9\uff10-\uff19]"
)
"""A letter or a digit of any kind, such as ² or ½, except those of scripts that put no spaces between words, where a
number stands between letters. (Ranges, because re searches them faster than \\w.)"""
_OPERATOR = f"[{_SIGN}/\u2044\u2215^\u00d7\u00b7\u22c5]"
_MARK = f"[.,:~'\u2019\u2014\uff0c\uff1a\uff5e{_THIN}]"
"""Joins two digits, but ends a number if no digit follows."""
_LAYOUT = r"(?:,?\\[,:;!]|\{,\})"
"""How LaTeX sets a space or a comma between two digits."""
_SLASH = f"[{_SPACE}]?[/\u2044\u2215][{_SPACE}]?"
_TIMES = f"[{_SPACE}]?(?:[\u00d7\u00b7\u22c5xX*]|\\\\times|\\\\cdot)[{_SPACE}]?"
_SUPERSCRIPT = "\u2070\u00b9\u00b2\u00b3\u2074-\u2079"
_POWER = (
    rf"(?:(?:\^|\*\*)[{{(]?(?P<power>[{_SIGN}]?[0-9]++)[)}}]?"
    rf"|(?P<superscript>[\u207a\u207b]?[{_SUPERSCRIPT}]++))"
)
_FRACTION_COMMAND = r"\\[dtc]?frac"
_SCALE = r"hundred|thousand|million|billion|trillion|quadrillion|lakh|crore|[百千万萬亿億兆]"

# Three digits after a space continue a group of at most three.
_THREE = "[0-9]{3}(?![0-9])"
_GROUP_AND_SPACE = "|".join(rf"(?<=(?<![0-9.])[0-9]{{{n}}}[{_SPACE}])" for n in (1, 2, 3))

_NOT_A_WORD, _NO_OPERATION = f"(?<!{_LETTER})", rf"(?<![{_OPERATOR[1:-1]}.\u00b1\u221a\u8d1f])(?<!\^\()"
_FREE = (
    rf"(?:(?<=[\n$\[(])"
    rf"|(?<![{_SPACE}])(?<![0-9]{_MARK})(?<!,\}})(?<!\\[,:;!])(?<!{_LETTER}\*)(?<![0-9)]\*\*)"
    r"(?<![\^_]\{)(?<!\}\{)(?<!frac\{)(?<!sqrt\{)"
    rf"|(?<=[{_SPACE}])(?<![0-9}}]/ )(?<![0-9}}] / )(?<!\}}\{{ )(?<!frac\{{ )(?<!minus )(?<!negative )"
    rf"(?<![=:(\[] [-\u2212] )(?<![=:(\[][-\u2212] )(?!(?:{_GROUP_AND_SPACE}){_THREE})"
    rf"(?!(?<=[0-9][{_SPACE}])[0-9]++{_SLASH}[0-9]))"
)
_BEGIN = _NOT_A_WORD + _NO_OPERATION + _FREE
"""Where an unsigned number may begin."""
_BEGIN_SIGN = rf"(?<!{_LETTER})(?<![)\]}}.])(?<!{_OPERATOR})(?<![0-9] )(?<!{_LETTER}\*)(?<![0-9)]\*\*)"
"""Where a sign may begin a number; elsewhere it is an operator or a hyphen."""
_AFTER_A_SPACE = (
    rf"[/\u2044\u2215][{_SPACE}]?[0-9(\\]|{_TIMES}10(?:\^|\*\*|[\u207a\u207b{_SUPERSCRIPT}])|\\?[%\u2030]"
    rf"|{_FRACTION_COMMAND}|\\sqrt|\\pi(?![A-Za-z])|{_SCALE}|(?:{_GROUP_AND_SPACE}){_THREE}|[0-9]++{_SLASH}[0-9]"
)
_TOUCHING = (
    rf"{_LAYOUT}[0-9]|\.{{2,3}}[0-9]|{_OPERATOR}{{1,2}}(?:{_LETTER}|[({{\\])|\*\*?[0-9(\\]"
    rf"|\*[A-Za-z]|\\(?:times|cdot|div)(?![A-Za-z])|{_AFTER_A_SPACE}"
)
_END = (
    rf"(?!{_LETTER}|{_MARK}[0-9])(?:(?=[)\]}}$\n])"
    rf"|(?![{_SPACE}])(?!{_TOUCHING})|(?=[{_SPACE}])(?![{_SPACE}](?:{_AFTER_A_SPACE})))"
)
"""Where a number may end."""
_WORDLIKE = rf"[{_OPERATOR[1:-1]}{_MARK[1:-1]}*0-9A-Za-z_]"
_JOINED = rf"[0-9]{_WORDLIKE}*+(?:(?:{_LAYOUT}[0-9]|{_LETTER}){_WORDLIKE}*+)*+"
"""A digit, and everything that is joined to it on its right."""


# The first number of a grammar -----------------------------------------------------------------------------------


def first(text: str, grammar: str) -> str | None:
    """The first whole number of a text that a grammar allows, as it is written there; None if there is none.

    Args:
        text: the text.
        grammar: a regular expression. Its numbers begin with a digit, or with [+-]? and then a digit.
    """
    found = _search(grammar).match(text) if all(map(text.__contains__, _needed(grammar))) else None
    if found is None:
        return None
    signed = grammar.startswith(_SIGNED) and text[found.start("number") - 1 : found.start("number")] in {"+", "-"}
    return text[found.start("number") - signed : found.end("number")]


def at_start(text: str, grammar: str) -> str | None:
    """The number with which a text begins, if it is whole and the grammar allows it (see `first`)."""
    found = _whole(grammar).match(text)
    return found and found.group()


_SIGNED = "[+-]?"


@functools.cache
def _needed(grammar: str) -> str:
    """What every number of a grammar contains besides digits: a text without it needs no search."""
    return "".join(character for character in "./e" if character in grammar)


@functools.cache
def _whole(grammar: str) -> re.Pattern[str]:
    return re.compile(f"(?>{grammar}){_END}")


@functools.cache
def _search(grammar: str) -> re.Pattern[str]:
    signed = grammar.startswith(_SIGNED)
    untouched = rf"(?:{_NO_OPERATION}|(?<={_BEGIN_SIGN}[+-]))" if signed else _NO_OPERATION
    number = f"(?>{grammar.removeprefix(_SIGNED)})"
    # What decides sooner comes first.
    whole = f"{_NOT_A_WORD}{untouched}(?={number}{_END}){_FREE}"
    return re.compile(rf"(?:[^0-9]*+(?!{whole}){_JOINED})*+[^0-9]*+(?P<number>{number})")


# The last number, however it is written --------------------------------------------------------------------------


class Written(NamedTuple):
    """A number as it was written, without separators. All digits are ASCII, and kept."""

    sign: str
    """"-", "+" or nothing."""
    whole: str
    """The digits before the point; the numerator of a fraction."""
    decimals: str | None = None
    """The digits after the point; None if there is no point."""
    exponent: str | None = None
    """The exponent with its sign; None if there is none."""
    denominator: str | None = None

    def integer(self) -> str | None:
        """Sign and digits, if the number is written as an integer.

        15.0 is the integer 15; 15.000 may be meant as 15 thousand, and 1.5e1 is not written as an integer.
        """
        decimals = self.decimals or ""
        if self.exponent or self.denominator or decimals.strip("0") or len(decimals) == 3:
            return None
        return self.sign + self.whole

    def as_answer(self, representation: Representation) -> str | None:
        """The number in the grammar of a representation, without superfluous zeros; None if it is not written so.

        Only the way of writing changes, never what a task may ask for: a fraction is not reduced or divided, a point
        does not move. An integer also counts as a float (12 is 12.0) and as a fraction (2 is 2/1). The grammar has no
        negative numbers and no negative exponents.
        """
        whole = self.whole.lstrip("0") or "0"
        decimals = (self.decimals or "").rstrip("0") or "0"
        simple = not self.exponent and not self.denominator
        if self.sign == "-":
            return None
        if representation is Integer:
            return whole if self.integer() else None
        if representation is Float:
            return f"{whole}.{decimals}" if simple else None
        if representation is Fraction:
            return f"{whole}/{(self.denominator or '1').lstrip('0') or '0'}" if self._may_be_fraction else None
        exponent = (self.exponent or "-").removeprefix("+")
        return None if exponent.startswith("-") else f"{whole}.{decimals}e{exponent.lstrip('0') or '0'}"

    @property
    def _may_be_fraction(self) -> bool:
        return not self.exponent and self.decimals is None


def last(text: str) -> Written | None:
    """The number that holds the last digit of a text; None if that digit is in no whole number."""
    end = 1 + max(map(text.rfind, _DIGITS_OF_ANY_KIND))
    for length in (2**9, 2**15, end) if end else ():
        start = max(0, end - length)
        found = next(iter(deque(_NUMBER_OR_JOINED.finditer(text, start), maxlen=1)), None)
        written = _written(text, found) if found and found.end() >= end else None
        # What the search began within may be joined to something before it.
        if written or start == 0 or (found and _BREAK.search(text, start, found.start() - _LONGEST_JOINT)):
            return written
    return None


def _written(text: str, found: re.Match[str]) -> Written | None:
    """What a match in a text says; None if it is joined to something on its left, or not grouped in a known way."""
    head = _HEAD.search(text, max(0, found.start() - 10), found.start())
    assert head is not None, "a head may be empty"
    begin = _MAY_BEGIN_SIGN if head.group() else _MAY_BEGIN
    if found["joined"] or not begin.match(text, head.start()) or (head["fraction"] and not found["top"]):
        return None
    sign = (head["sign"] or "").translate(_PLAIN)
    top, bottom = found["top"] or found["number"], found["bottom"] or found["denominator"]
    if over := found["plain_top"] or found["latex_top"]:
        return _mixed(sign, top, over, found["plain_bottom"] or found["latex_bottom"])
    exponent = found["e"] or found["power"] or found["superscript"]
    parts = ("1", None) if exponent and not (found["e"] or found["times"]) else _parts(top)
    below = _parts(bottom) if bottom else ("", None)
    if not parts or not below or (bottom and (parts[1] or below[1])):
        return None
    whole, decimals = ("0", parts[0]) if head["point"] else parts
    return Written(sign, whole, decimals, exponent and exponent.translate(_PLAIN), below[0] or None)


def _mixed(sign: str, whole: str, top: str, bottom: str) -> Written | None:
    if not whole.isdigit() or max(map(len, (whole, top, bottom))) > _LONGEST_MIXED:
        return None
    return Written(sign, str(int(whole) * int(bottom) + int(top)), denominator=bottom)


def _parts(digits: str) -> tuple[str, str | None] | None:
    """The digits before and after the point; None if they are not grouped in any known way."""
    if digits.isdigit():
        return digits, None
    for separator, usual in _USUAL_SEPARATORS.items():
        digits = digits.replace(separator, usual)
    if "\t" in digits:
        digits = digits.replace(",\t", ",")
    found = _GROUPED.fullmatch(digits)
    if found is None:
        return None
    decimals = next(filter(None, map(found.group, _DECIMALS)), None)
    whole = found.group()[: -len(decimals)] if decimals else found.group()
    return whole.translate(_NO_SEPARATORS), decimals


_LONGEST_MIXED = 2_000
"""int() and str() refuse more than 4,300 digits."""
_LONGEST_JOINT = 40
"""More characters than any joint between the parts of a number has, except that groups of digits go on for ever."""

_RUN = rf"[0-9](?:[0-9_{_MARK[1:-1]}]*[0-9])?+"
_DIGITS = rf"{_RUN}(?:(?:{_LAYOUT}|[{_SPACE}](?={_THREE})){_RUN})*+"
_NUMBER_OR_JOINED = re.compile(
    rf"""(?:
        (?:(?<=frac\{{)|(?<=frac\{{[ ]))(?P<top>{_DIGITS})[ ]?\}}[ ]?\{{[ ]?(?P<bottom>{_DIGITS})[ ]?\}}
        | (?P<number>{_DIGITS})
        (?:
            {_SLASH}(?P<denominator>{_DIGITS})
            | [{_SPACE}](?P<plain_top>[0-9]++){_SLASH}(?P<plain_bottom>[0-9]++)
            | [{_SPACE}]?{_FRACTION_COMMAND}\{{[ ]?(?P<latex_top>[0-9]++)
              [ ]?\}}[ ]?\{{[ ]?(?P<latex_bottom>[0-9]++)[ ]?\}}
            | (?:(?P<times>{_TIMES}10)|(?<=(?<![0-9])10)){_POWER}
            | [eE](?P<e>[{_SIGN}]?[0-9]++)
        )?+
    ){_END} | (?P<joined>{_JOINED})""",
    re.VERBOSE,
)
_GROUPED = re.compile(
    r"""(?:
      [0-9]+\.(?P<plain>[0-9]+)
    | (?!0)[0-9]{1,3}(?P<by>[,'_\ \t])[0-9]{3}(?:(?P=by)[0-9]{3})*(?:\.(?P<english>[0-9]+))?
    | (?!0)[0-9]{1,2}(?:,[0-9]{2})+,[0-9]{3}(?:\.(?P<indian>[0-9]+))?
    | (?!0)[0-9]{1,4}(?:,[0-9]{4}){2,}
    | (?!0)[0-9]{1,3}(?:\.[0-9]{3}){2,}
    | (?!0)[0-9]{1,3}(?P<dot>[.'\ \t])[0-9]{3}(?:(?P=dot)[0-9]{3})*,(?P<european>[0-9]+)
    | [0-9]+,(?P<comma>[0-9]+)
    )""",
    re.VERBOSE,
)
_DECIMALS = ("plain", "english", "indian", "european", "comma")
_USUAL_SEPARATORS = {
    **dict.fromkeys(("\\,", "\\!", "\\:", "\\;", *_THIN), "\t"),
    **{"\u00a0": " ", "\u2019": "'", "{,}": ",", "\uff0c": ","},
}
_NO_SEPARATORS = str.maketrans("", "", ",.'_ \t")
_HEAD = re.compile(rf"(?P<sign>[{_SIGN}])?(?:(?P<fraction>{_FRACTION_COMMAND}\{{ ?)|(?P<point>\.))?\Z")
_MAY_BEGIN, _MAY_BEGIN_SIGN = re.compile(_BEGIN), re.compile(_BEGIN_SIGN)
_BREAK = re.compile(rf"[^0-9{_SPACE}{_THIN}.,:'\u2019\uff0c_\\!;{{}}]|[^0-9]{{4}}|[{_SPACE}](?!{_THREE})")
"""What no number goes on after, except by one of the short joints."""
_DIGITS_OF_ANY_KIND = "0123456789\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"
_PLAIN = str.maketrans(
    {
        **dict(zip(_DIGITS_OF_ANY_KIND[10:], _DIGITS_OF_ANY_KIND[:10], strict=True)),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2212\uff0d\u207b", "-"),
        "\u207a": "+",
    }
)
