"""What a submission's text may not contain. Only the text is looked at.

This rules out the tools that deceptions are made of: in the whole file those that reach into Python itself or replace
torch's parts, and in `encode`, `decode` and all they call more of them.
"""

import ast

from lab.benchmarks.smallest_adder.counting import literals

LARGEST = 256 << 10
MOST_LITERALS = 10_000
LONGEST_TEXTS = 128 << 10

FORBIDDEN_MODULES = {
    "ctypes", "gc", "importlib", "inspect", "marshal", "multiprocessing", "pickle", "shelve", "dill", "cloudpickle",
    "signal", "socket", "subprocess", "threading", "_thread", "builtins", "tracemalloc", "weakref", "mmap",
}  # fmt: skip
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__", "breakpoint"}
FORBIDDEN_ATTRIBUTES = {
    "__globals__", "__closure__", "__code__", "__builtins__", "__subclasses__", "__mro__", "__bases__", "_getframe",
    "tb_frame", "f_back", "f_globals", "f_locals", "gi_frame",
    "__defaults__", "__kwdefaults__", "untyped_storage", "storage", "frombuffer", "data_ptr", "_cdata",
    "as_strided", "__getattribute__",
}  # fmt: skip

FORBIDDEN_IN_CODECS = {
    "os", "sys", "io", "pathlib", "shutil", "tempfile", "time", "random", "torch", "globals", "locals", "vars", "open",
    "setattr", "getattr", "delattr", "input", "id", "__builtins__",
}  # fmt: skip


def objections(source: str) -> list[str]:
    """Each with its line."""
    tree = ast.parse(source)
    found = []
    if len(source.encode()) > LARGEST:
        found.append(f"{len(source.encode()):,} bytes of source; at most {LARGEST:,}")
    if literals(source) > MOST_LITERALS:
        found.append(f"{literals(source):,} numbers in the source; at most {MOST_LITERALS:,}")
    texts = sum(
        len(node.value) for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    if texts > LONGEST_TEXTS:
        found.append(f"{texts:,} characters of texts in the source; at most {LONGEST_TEXTS:,}")
    tree.body = [node for node in tree.body if not _runs_as_main(node)]
    found += _everywhere(tree)
    for name in ("encode", "decode"):
        found += _in_codec(tree, name)
    return found


def _runs_as_main(node: ast.stmt) -> bool:
    """Such a block is never run here."""
    return (
        isinstance(node, ast.If)
        and isinstance(node.test, ast.Compare)
        and ast.unparse(node.test) in ("__name__ == '__main__'", "'__main__' == __name__")
        and not node.orelse
    )


def _everywhere(tree: ast.Module) -> list[str]:
    found = []
    libraries = {
        (alias.asname or alias.name).partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            for name in names:
                if name.partition(".")[0] in FORBIDDEN_MODULES:
                    found.append(f"line {node.lineno}: imports {name}")
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FORBIDDEN_CALLS:
            found.append(f"line {node.lineno}: calls {node.func.id}")
        elif isinstance(node, ast.Attribute) and (
            node.attr in FORBIDDEN_ATTRIBUTES or ast.unparse(node) == "sys.modules"
        ):
            found.append(f"line {node.lineno}: reaches for .{node.attr}")
        found += _replacements(node, libraries)
    return found


def _replacements(node: ast.AST, libraries: set[str]) -> list[str]:
    """Where it binds a part of a library anew: `torch.Tensor.argmax = ...`, `setattr(torch, ...)`."""
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AugAssign | ast.AnnAssign):
        targets = [node.target]
    elif isinstance(node, ast.Delete):
        targets = node.targets
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("setattr", "delattr"):
        targets = [ast.Attribute(node.args[0], "", ast.Store())] if node.args else []
    found = []
    for target in targets:
        inner = target
        while isinstance(inner, ast.Attribute | ast.Subscript):
            inner = inner.value
        if inner is not target and isinstance(inner, ast.Name) and inner.id in libraries:
            found.append(f"line {getattr(node, 'lineno', 0)}: replaces a part of {inner.id}")
    return found


def _in_codec(tree: ast.Module, start: str) -> list[str]:
    """What is forbidden in a function and in the file's functions that it names, and those that they name."""
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    waiting, seen, found = [start], set(), []
    while waiting:
        name = waiting.pop()
        if name in seen or name not in functions:
            continue
        seen.add(name)
        for node in ast.walk(functions[name]):
            line = getattr(node, "lineno", 0)
            if isinstance(node, ast.Import | ast.ImportFrom):
                found.append(f"line {line}: {start} imports")
            elif isinstance(node, ast.Global | ast.Nonlocal):
                found.append(f"line {line}: {start} changes globals")
            elif isinstance(node, ast.Name):
                waiting.append(node.id)
                if node.id in FORBIDDEN_IN_CODECS:
                    found.append(f"line {line}: {start} uses {node.id}")
    return found
