"""Finds the first line in which a model departs from the rule that it follows, and what kind of line it got wrong.

statement    the next statement of the rule, or entering or leaving a function: the model lost its place in the program
branch       a loop was entered instead of ended, or ended instead of entered; or the wrong branch of an if was taken
condition    the values in a condition, or whether it holds
lookup       a value that is copied, cut or converted: a slice, an operand, text to number
operand      the values of an expression, before it is computed
result       the result of an expression whose operands are right
answer       the last line
unfinished   every line is right, but some are missing

Traces without statements (short.py) have fewer kinds. If names are missing, are in another order or belong to another
function, the kind is statement. If a value is wrong, the kind is lookup for a value that is looked up or passed to a
function, and result for a value that is assigned. Traces of bare and results have no names: if a line has the wrong
number of values, the kind is statement, and if a value is wrong, the kind is result.
"""

import re
from typing import NamedTuple

from lab.config.schema import Detail
from lab.rules.traces.lines import ANSWER

KINDS = ("statement", "branch", "condition", "lookup", "operand", "result", "answer", "unfinished")

_FUNCTION = re.compile(r"\w+: ")
_ITEMS = re.compile(r'(\w+(?:\[[^]]*\])?)=("[^"]*"\S*|\([^)]*\)|\S*)')

_BRANCHES = {"enter the loop", "end the loop", "else:", "pass", "break", "continue"}


class FirstError(NamedTuple):
    kind: str
    line: int
    """The number of the line, from 0."""
    lines: int
    """How many lines the right trace has."""
    expected: str
    written: str
    """What the model wrote on that line; empty if it wrote nothing."""


def first_error(written: str, expected: str, rule: str, detail: Detail = "full") -> FirstError | None:
    """The first line of a response that differs from the right trace; None if no line differs.

    Whatever a model adds to the last line or writes after it is ignored.

    Args:
        written: the response of the model.
        expected: the right completion.
        rule: the text of the rule, as the prompt shows it.
        detail: the detail of the trace (tracing.py).
    """
    lines = expected.splitlines()
    given = written.splitlines()
    statements = {line.strip() for line in rule.splitlines()}
    for index, line in enumerate(lines):
        found = given[index].rstrip() if index < len(given) else None
        if found == line or (found and line.startswith(ANSWER) and _same_answer(line, found)):
            continue
        before = lines[index - 1] if index else ""
        if found is None:
            kind = "unfinished"
        elif detail in ("bare", "results") and not line.startswith(ANSWER):
            kind = "result" if len(line.split()) == len(found.split()) else "statement"
        elif detail == "full" or line.startswith(ANSWER):
            kind = _kind(line, found, before, statements)
        else:
            kind = _short_kind(line, found, handed=index == 0 or bool(_FUNCTION.match(line)))
        return FirstError(kind, index, len(lines), line, found or "")
    return None


def _same_answer(line: str, found: str) -> bool:
    """Whether the last line gives the right answer; what follows is ignored unless it continues the number."""
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
