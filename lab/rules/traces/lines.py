"""Lines of a trace: fixed text, and slots for the values that a step assigns to names."""

import ast
import re
from typing import Any, NamedTuple, TypeAlias

ANSWER = "So the answer is "
"""The start of a trace's last line."""


class Slot(NamedTuple):
    target: ast.expr
    """One name, or several."""
    text: str
    """The value, or how it follows from the name's previous value: `a[:-1]`, `"3"+a`, `a+"3"`."""
    before: Any = None
    """The previous value, if the target is a single name and the text is such a change."""
    form: str = "{}"
    """What the text stands for, with the text in place of {}: `"{}"+result` if only the new digits are written."""


Line: TypeAlias = tuple[str | Slot, ...]


def written(line: Line) -> str:
    """The line as text."""
    return "".join(part if isinstance(part, str) else part.text for part in line)


def slots(line: Line) -> list[Slot]:
    return [part for part in line if isinstance(part, Slot)]


def found(line: Line, text: str) -> list[str] | None:
    """What a text has in place of a line's slots; None if the fixed text differs."""
    pattern = "".join(re.escape(part) if isinstance(part, str) else "(.+?)" for part in line)
    match = re.fullmatch(pattern, text)
    return list(match.groups()) if match else None


def value_of(slot: Slot, text: str) -> Any:
    """The value that a text in place of a slot stands for. Raises ValueError if it stands for none."""
    try:
        tree = ast.parse(slot.form.replace("{}", text), mode="eval")
        if isinstance(slot.target, ast.Name) and _is_change(tree.body):
            return eval(compile(tree, "trace", "eval"), {"__builtins__": {}}, {slot.target.id: slot.before})
        return ast.literal_eval(tree)
    except (SyntaxError, TypeError, NameError, MemoryError, RecursionError) as error:
        raise ValueError(f"{text!r} is not a value") from error


def _is_change(node: ast.expr) -> bool:
    """Whether an expression cuts a name, or joins a constant and a name."""
    match node:
        case ast.Subscript(value=ast.Name(), slice=ast.Slice()):
            return not any(isinstance(part, (ast.Name, ast.Call)) for part in ast.walk(node.slice))
        case ast.BinOp(left=ast.Name(), op=ast.Add(), right=ast.Constant()):
            return True
        case ast.BinOp(left=ast.Constant(), op=ast.Add(), right=ast.Name()):
            return True
    return False
