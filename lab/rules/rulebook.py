"""Reads rules from Python files: the text that a prompt shows, and its syntax tree.

A rule file is ordinary, runnable Python. Its last function is the rule; it takes the operands as text and returns the
answer as text. A prompt shows this function and the functions that it calls, imported ones first, without docstrings
and comments. Constants of the module are replaced by their values. For example, from

    UNIT = 3
    BASE = 10**UNIT
    def add(num1, num2):
        ...
        carry = total // BASE

a model reads `carry = total // 1000`. If a rule has a constant UNIT, it is the number of digits that a step takes; the
caller may ask for another value. ALLOWED, CALLS and METHODS list what a rule may contain; anything else is refused, and
the error names it.
"""

import ast
import io
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from lab.errors import RuleError
from lab.numbers.tasks import TASKS, Task
from lab.shipped import CONFIGS

RULES = Path(__file__).parent / "library"
"""The folder of the lab's own rules."""

CALLS = ("int", "str", "len", "max", "min", "abs", "bool", "range")
METHODS = (
    *("count", "lstrip", "rstrip", "strip", "zfill", "ljust", "rjust"),
    *("split", "replace", "startswith", "endswith"),
)
STATEMENTS = (
    *(ast.Assign, ast.AugAssign, ast.If, ast.While, ast.For),
    *(ast.Return, ast.Pass, ast.Break, ast.Continue),
)
ALLOWED = (
    *STATEMENTS,
    *(ast.Name, ast.Constant, ast.Tuple, ast.Subscript, ast.Slice, ast.Call, ast.Attribute, ast.IfExp),
    *(ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod),
    *(ast.UnaryOp, ast.USub, ast.Not, ast.BoolOp, ast.And, ast.Or),
    *(ast.Compare, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn),
    *(ast.Load, ast.Store, ast.FunctionDef, ast.arguments, ast.arg),
)


@dataclass(frozen=True, eq=False)
class Rule:
    name: str
    """The name of its file without .py."""
    text: str
    """The text that a prompt shows; the line and column numbers of the tree's nodes refer to it."""
    functions: dict[str, ast.FunctionDef]
    """The functions of the text, by name."""
    entry: ast.FunctionDef
    """The function that is the rule itself."""
    compiled: dict[ast.expr, Any] = field(default_factory=dict, repr=False)
    """The compiled code of expressions that have been evaluated, so that each of them is compiled only once."""


def located(folder: Path) -> Path:
    """The folder of this path, or, if there is none, the one that comes with the lab: shipped configs name
    configs/rules wherever they are used, in a checkout or from a wheel."""
    places = (folder, CONFIGS.parent / folder)
    return next((place for place in places if place.is_dir()), folder)


def rule_file(task: Task, folder: Path | None = None) -> Path | None:
    """The rule file of a task, from `folder` (see `located`) or else from the lab's own rules; None if there is none.

    Hard and easy variants share one rule (max_integer.py).
    """
    base = task.name.removesuffix("_easy").removesuffix("_hard")
    names = [f"{name}_{task.representation.name}.py" for name in (task.name, base)]
    files = [parent / name for parent in (folder and located(folder), RULES) if parent for name in names]
    return next((path for path in files if path.is_file()), None)


def rule_of(task: Task, unit: int | None = None, folder: Path | None = None) -> Rule:
    """The rule of a task.

    Args:
        task: the task.
        unit: how many digits a step takes, instead of the UNIT in the rule's file.
        folder: a folder of rules that take precedence over the lab's own.

    Raises RuleError if the task has no rule, or if its rule cannot be followed.
    """
    path = rule_file(task, folder)
    if path is None:
        where = f"{folder} or lab/rules/library" if folder else "lab/rules/library"
        raise RuleError(f"no rule for {task.key}: there is no {task.key}.py in {where}")
    return read_rule(path, unit)


def check_folder(folder: Path) -> None:
    """Raises RuleError if the folder does not exist, or contains no rule for any task."""
    folder = located(folder)
    if not folder.is_dir():
        raise RuleError(f"data.rules.folder or benchmark.rules.folder: there is no folder {folder}")
    if not any(rule_file(task, folder) in set(folder.iterdir()) for task in TASKS.values()):
        raise RuleError(f"no file in the folder {folder} is the rule of a task, such as add_integer.py")


@lru_cache(maxsize=1024)
def read_rule(path: Path, unit: int | None = None) -> Rule:
    """The rule in a file. Raises RuleError, naming file and line, if it cannot be followed.

    Args:
        path: the file of the rule.
        unit: how many digits a step takes, instead of the file's UNIT.
    """
    texts: dict[str, str] = {}
    origins: dict[str, Path] = {}
    for name, text, origin in _functions(path, unit, ()):
        if origins.setdefault(name, origin) != origin:
            raise RuleError(f"rule {path.name}: {name} is defined in {origins[name].name} and in {origin.name}")
        texts[name] = text
    own = [name for name, origin in origins.items() if origin == path]
    if not own:
        raise RuleError(f"rule {path.name} defines no function")
    wanted = _reachable(own[-1], texts, path.name)
    text = "\n".join(texts[name] for name in texts if name in wanted)
    functions = {node.name: node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
    for node in functions.values():
        _check(node, set(functions), path.name)
    return Rule(path.stem, text, functions, functions[own[-1]])


def _functions(path: Path, unit: int | None, importers: tuple[Path, ...]) -> Iterator[tuple[str, str, Path]]:
    """The name, shown text and file of every function that the file defines, or imports directly or indirectly."""
    if path in importers:
        raise RuleError(f"rule {importers[0].name}: {path.name} imports itself, directly or through others")
    tree, source = _parse(path)
    constants: dict[str, int | str] = {}
    for node in tree.body:
        match node:
            case ast.Expr(value=ast.Constant()):
                pass
            case ast.ImportFrom(module=str(module)):
                imported = list(_functions(_sibling(path, module, node.lineno), unit, (*importers, path)))
                for alias in node.names:
                    if alias.asname or alias.name not in [name for name, _, _ in imported]:
                        raise RuleError(f"rule {path.name}, line {node.lineno}: {module} has no function {alias.name}, "
                                        "or it is imported under another name")  # fmt: skip
                yield from imported
            case ast.Assign(targets=[ast.Name(id=name)]):
                value = unit if name == "UNIT" and unit else _constant(node.value, constants, path.name)
                constants[name] = value
            case ast.FunctionDef(name=name, decorator_list=[]):
                yield name, _shown(node, source, constants, path.name), path
            case _:
                raise RuleError(f"rule {path.name}, line {node.lineno}: {_name(node)} outside a function")


def _parse(path: Path) -> tuple[ast.Module, str]:
    try:
        source = path.read_text(encoding="ascii")
        return ast.parse(source), source
    except SyntaxError as error:
        raise RuleError(f"rule {path.name}, line {error.lineno}: {error.msg}") from None
    except UnicodeDecodeError:
        raise RuleError(f"rule {path.name} cannot be read: it should be ASCII throughout") from None
    except (RecursionError, MemoryError):
        raise RuleError(f"rule {path.name} cannot be read: it is nested too deeply") from None
    except (OSError, ValueError) as error:
        raise RuleError(f"rule {path.name} cannot be read: {error}") from None


def _sibling(path: Path, module: str, line: int) -> Path:
    """The file of an imported module: one of the lab's rules by its full name, or a file beside the importing one."""
    package, _, stem = module.rpartition(".")
    found = (RULES if package == "lab.rules.library" else path.parent) / f"{stem}.py"
    if package not in ("", "lab.rules.library") or not found.is_file():
        raise RuleError(f"rule {path.name}, line {line}: there is no rule file {stem}.py to import from")
    return found


def _constant(node: ast.expr, constants: dict[str, int | str], file: str) -> int | str:
    match node:
        case ast.Constant(value=int() | str() as value):
            return value
        case ast.Name(id=name) if name in constants:
            return constants[name]
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() | ast.Pow() as op, right=right):
            a, b = _constant(left, constants, file), _constant(right, constants, file)
            if isinstance(a, int) and isinstance(b, int) and max(abs(a), abs(b)) <= 10_000:
                if not isinstance(op, ast.Pow):
                    return {ast.Add: a + b, ast.Sub: a - b, ast.Mult: a * b}[type(op)]
                if 0 <= b <= 1000:
                    return a**b
    what = "a constant is a text, a number, or a sum, difference, product or power of small whole numbers"
    raise RuleError(f"rule {file}, line {node.lineno}: {what}")


def _shown(function: ast.FunctionDef, source: str, constants: dict[str, int | str], file: str) -> str:
    """The function's text without docstring, comments and blank lines, and with the values of constants."""
    lines = source.splitlines()[function.lineno - 1 : function.end_lineno]
    first = function.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and first.end_lineno:
        begin, end = first.lineno - function.lineno, first.end_lineno - function.lineno
        lines[begin : end + 1] = [""] * (end + 1 - begin)
    changes = []
    for token in tokenize.generate_tokens(io.StringIO("\n".join(lines) + "\n").readline):
        if token.type == tokenize.STRING and token.start[0] != token.end[0]:
            line = function.lineno + token.start[0] - 1
            raise RuleError(f"rule {file}, line {line}: a text should end on the line on which it begins")
        if token.type == tokenize.COMMENT:
            changes.append((token.start, token.end, ""))
        elif token.type == tokenize.NAME and token.string in constants:
            changes.append((token.start, token.end, repr(constants[token.string])))
    for (row, begin), (_, end), new in reversed(changes):
        line = lines[row - 1]
        lines[row - 1] = line[:begin] + new + line[end:]
    return "\n".join(line.rstrip() for line in lines if line.strip())


def _reachable(entry: str, texts: dict[str, str], file: str) -> set[str]:
    """The names of a function and of all functions that it calls, directly or indirectly."""
    found: set[str] = set()
    waiting = [entry]
    while waiting:
        name = waiting.pop()
        found.add(name)
        try:
            tree = ast.parse(texts[name])
        except SyntaxError:  # no longer valid: it had only a docstring, or a constant became def f(3):
            why = "has no statement, or uses the name of a constant of the file for something else"
            raise RuleError(f"rule {file}: {name} {why}") from None
        called = {node.func.id for node in ast.walk(tree) if calls_rule(node, set(texts))}  # type: ignore[attr-defined]
        waiting += called - found
    return found


def calls_rule(node: ast.AST | None, functions: "dict[str, ast.FunctionDef] | set[str]") -> bool:
    """Whether an expression is just a call of one of the rule's own functions."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in functions


def _check(function: ast.FunctionDef, functions: set[str], file: str) -> None:
    def refuse(node: ast.AST, what: str) -> None:
        raise RuleError(f"rule {file}, {function.name}: {what} ({ast.unparse(node)[:60]!r})")

    arguments = function.args
    extra = arguments.posonlyargs or arguments.kwonlyargs or arguments.vararg or arguments.kwarg or arguments.defaults
    if extra:
        refuse(arguments, "arguments should be plain names, without defaults")
    alone = {
        id(node.value)
        for node in ast.walk(function)
        if isinstance(node, (ast.Assign, ast.Return)) and calls_rule(node.value, functions)
    }
    for node in ast.walk(function):
        if not isinstance(node, ALLOWED):
            refuse(node, f"{_name(node)} is not known to the tracer")
        match node:
            case ast.FunctionDef() if node is not function:
                refuse(node, "a function within a function is not known to the tracer")
            case ast.If(body=[first, *_]) | ast.While(body=[first, *_]) | ast.For(body=[first, *_]) if (
                first.lineno == node.lineno
            ):
                refuse(node, "a body should begin on a line of its own")
            case ast.While(orelse=[_, *_]) | ast.For(orelse=[_, *_]):
                refuse(node, "else after a loop is not known to the tracer")
            case ast.Constant(value=value) if not isinstance(value, (int, str)):
                refuse(node, f"{type(value).__name__} values are not known to the tracer")
            case ast.Assign(targets=[target]) | ast.AugAssign(target=target) | ast.For(target=target) if _names(target):
                pass
            case ast.Assign() | ast.AugAssign() | ast.For():
                refuse(node, "only names can be assigned to")
            case ast.Return(value=None):
                refuse(node, "a return should give a value")
            case ast.Call(keywords=[_, *_]):
                refuse(node, "arguments by keyword are not known to the tracer")
            case ast.Call(func=ast.Name(id=name)) if name in functions:
                if id(node) not in alone:
                    refuse(node, f"{name} should be called in a statement of its own, x = {name}(...)")
            case ast.Call(func=ast.Name(id=name)) if name not in CALLS:
                refuse(node, f"{name} is not known to the tracer, which knows {', '.join(CALLS)}")
            case ast.Call(func=ast.Attribute(attr=name)) if name not in METHODS:
                refuse(node, f"the method {name} is not known to the tracer, which knows {', '.join(METHODS)}")
            case ast.Call(func=func) if not isinstance(func, (ast.Name, ast.Attribute)):
                refuse(node, "only a function or a method can be called, by its name")
    called = {id(node.func) for node in ast.walk(function) if isinstance(node, ast.Call)}
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and id(node) not in called:
            refuse(node, "attributes are not known to the tracer")


def _names(target: ast.expr) -> bool:
    if isinstance(target, ast.Tuple):
        return all(map(_names, target.elts))
    return isinstance(target, ast.Name)


def _name(node: ast.AST) -> str:
    return type(node).__name__.lower()
