"""Where a rule that a model follows is first left: the line, and what kind of line it should have been.

statement    the next statement of the rule, or entering and leaving a function: the place in the program is lost
branch       a loop is entered that should end, or ended that should be entered; likewise the branches of an if
condition    what a condition sees, or whether it holds
lookup       a value that is copied, cut or converted: a slice, an operand, text to number
operand      the values of an expression, before it is computed
result       what an expression with the right operands comes to
answer       the last line
unfinished   right as far as it goes

Of a trace without statements (short_trace.py), a value that is looked up or handed to a function is a lookup, one that
is assigned a result, and names in another order, of another function or missing are a statement.
"""

import re
from typing import NamedTuple

from lab.config.schema import Detail
from lab.text.rule_following import ANSWER

KINDS = ("statement", "branch", "condition", "lookup", "operand", "result", "answer", "unfinished")

_FUNCTION = re.compile(r"\w+: ")
_ITEMS = re.compile(r'(\w+(?:\[[^]]*\])?)=("[^"]*"\S*|\([^)]*\)|\S*)')

_BRANCHES = {"enter the loop", "end the loop", "else:", "pass", "break", "continue"}


class FirstError(NamedTuple):
    kind: str
    line: int
    """From 0."""
    lines: int
    """Of the whole trace, as it should be."""
    expected: str
    written: str
    """Empty where nothing was."""


def first_error(written: str, expected: str, rule: str, detail: Detail = "full") -> FirstError | None:
    """The first line of a response that is not that of the trace of `rule`, its text; None where there is none.

    What a model adds to the last line or writes after it is not looked at.
    """
    lines = expected.splitlines()
    given = written.splitlines()
    statements = {line.strip() for line in rule.splitlines()}
    for number, line in enumerate(lines):
        found = given[number].rstrip() if number < len(given) else None
        if found == line or (found and line.startswith(ANSWER) and _same_answer(line, found)):
            continue
        before = lines[number - 1] if number else ""
        if found is None:
            kind = "unfinished"
        elif detail == "full" or line.startswith(ANSWER):
            kind = _kind(line, found, before, statements)
        else:
            kind = _short_kind(line, found, handed=number == 0 or bool(_FUNCTION.match(line)))
        return FirstError(kind, number, len(lines), line, found or "")
    return None


def _same_answer(line: str, found: str) -> bool:
    """Whether the last line gives the answer, whatever follows that is no part of a number."""
    return bool(re.match(re.escape(line.removesuffix(".")) + r"(?![\d/e]|\.\d)", found))


def _kind(line: str, found: str, before: str, statements: set[str]) -> str:
    if line.startswith(ANSWER):
        return "answer"
    if line in _BRANCHES or found in _BRANCHES:
        return "branch"
    if line in statements or line.startswith(("enter function: ", "exit function: ")):
        return "statement"
    if before.startswith(("while ", "if ", "elif ")):
        return "condition"
    sides, found_sides = line.removeprefix("return ").split(" = "), found.removeprefix("return ").split(" = ")
    computed = len(sides) - (not line.startswith("return ")) > 1
    if not computed:
        return "lookup"
    return "result" if sides[:-1] == found_sides[: len(sides) - 1] else "operand"


def _short_kind(line: str, found: str, handed: bool) -> str:
    items, found_items = _ITEMS.findall(line), _ITEMS.findall(found)
    if _FUNCTION.findall(line) != _FUNCTION.findall(found) or [key for key, _ in items] != [k for k, _ in found_items]:
        return "statement"
    first = next((key for (key, value), (_, other) in zip(items, found_items, strict=True) if value != other), "")
    return "lookup" if handed or first.endswith("]") else "result"
