"""What the text of a Python adder says, without running it. Does not import torch."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lab.errors import TaskError

EXPORTS = ("build_model", "encode", "decode", "VOCAB_SIZE", "MAX_OUTPUT_LEN")
BOARD = (
    ". This looks like an AdderBoard file: the lab has the greedy loop of add(model, a, b), so what comes before it is "
    "encode(a, b), which returns a list of ids, and what comes after it is decode(tokens), which returns an int"
)
LARGEST_SOURCE = 1 << 20
CATEGORIES = ("trained", "hand-coded")
REACHING = {
    *("globals", "locals", "vars", "eval", "exec", "compile", "open", "__import__", "setattr", "delattr", "breakpoint"),
    *("os", "sys", "subprocess", "socket", "pickle", "inspect", "gc", "importlib", "builtins", "ctypes", "threading"),
}
"""Names with which `decode` could reach what is outside it."""


def read(path: Path) -> str:
    """The text of a file that offers the five exports. It is searched, not parsed: parsing happens in the confined
    process.

    Raises TaskError, in one line, if there is no such file, or if it lacks exports.
    """
    if not path.is_file():
        raise TaskError(f"{path}: there is no such file")
    if path.stat().st_size > LARGEST_SOURCE:
        raise TaskError(f"{path}: {path.stat().st_size:,} bytes; a Python adder has at most {LARGEST_SOURCE:,}")
    try:
        source = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise TaskError(f"{path}: not a Python file: {' '.join(str(error).split())}") from error
    # a word that a line has before any bracket, quote or comment; bounded, so that no text makes the search slow
    missing = [name for name in EXPORTS if not re.search(rf"^[^\n(\"'#]{{0,200}}\b{name}\b", source, re.MULTILINE)]
    hint = BOARD if re.search(r"^def add\(", source, re.MULTILINE) else ""
    if missing:
        raise TaskError(f"{path}: lacks {', '.join(missing)}; a Python adder exports {', '.join(EXPORTS)}{hint}")
    return source


def facts(source: str) -> dict[str, Any]:
    """The category and the number of seeds that a file states, and by which words its decode reaches outside.

    Raises SyntaxError, ValueError, RecursionError or MemoryError if it is not Python.
    """
    tree = ast.parse(source)
    doc = (ast.get_docstring(tree) or "").lower()
    stated = dict(re.findall(r"^\s*(category|seeds):[ .]*(.*?)[ .]*$", doc, re.MULTILINE))
    for node in tree.body:
        if isinstance(node, ast.Assign) and [*map(ast.unparse, node.targets)] == ["CATEGORY"]:
            stated["category"] = getattr(node.value, "value", None)
    category, seeds = stated.get("category"), stated.get("seeds", "")
    return {
        "category": category if category in CATEGORIES else "unstated",
        "seeds": int(seeds) if re.fullmatch("[0-9]{1,9}", seeds) else None,
        "reaches": ", ".join(sorted(set(reaches(tree)))[:5]),
    }


def reaches(tree: ast.Module) -> Iterator[str]:
    """Imports, global statements and names of REACHING in `decode` and in the functions that it calls by name."""
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    waiting, seen = ["decode"], set()
    while waiting:
        name = waiting.pop()
        if name in seen or name not in functions:
            continue
        seen.add(name)
        for node in ast.walk(functions[name]):
            if isinstance(node, ast.Import | ast.ImportFrom):
                yield "import"
            elif isinstance(node, ast.Global | ast.Nonlocal):
                yield "global"
            elif isinstance(node, ast.Name):
                waiting.append(node.id)
                if node.id in REACHING:
                    yield node.id
            elif isinstance(node, ast.Attribute) and node.attr.startswith("__"):
                yield node.attr
