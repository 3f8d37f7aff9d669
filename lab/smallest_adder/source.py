"""What a submission's text may not contain. Only the text is looked at.

This rules out the tools that deceptions are made of: in the whole file those that reach into Python itself or replace
torch's parts, and in `encode`, `decode` and all they call more of them. What is allowed is listed where it is short.
"""

import ast

from lab.smallest_adder.counting import literals

LARGEST = 256 << 10
MOST_LITERALS = 10_000
LONGEST_TEXTS = 128 << 10

IMPORTABLE = {
    "__future__", "abc", "argparse", "base64", "collections", "copy", "dataclasses", "datetime", "decimal", "einops",
    "enum", "fractions", "functools", "itertools", "json", "logging", "math", "numbers", "numpy", "os", "pathlib",
    "random", "re", "safetensors", "statistics", "string", "struct", "sys", "time", "torch", "tqdm", "typing",
    "warnings", "zlib",
}  # fmt: skip
OF_SYSTEM = {
    "sys": {"argv", "stdout", "stderr", "stdin", "exit", "path", "version", "version_info", "maxsize", "float_info"},
    "os": {"path", "environ", "getenv", "getcwd", "listdir", "makedirs", "sep", "cpu_count"},
}
SPECIAL = {
    "__init__", "__name__", "__doc__", "__class__", "__version__", "__file__", "__all__", "__annotations__", "__main__",
    "__len__", "__getitem__", "__setitem__", "__iter__", "__next__", "__call__", "__repr__", "__str__", "__post_init__",
    "__eq__", "__hash__", "__enter__", "__exit__", "__future__",
}  # fmt: skip
FORBIDDEN_NAMES = {"eval", "exec", "compile", "breakpoint", "vars", "globals", "locals"}
FORBIDDEN_ATTRIBUTES = {
    "tb_frame", "f_back", "f_globals", "f_locals", "gi_frame", "cr_frame", "ag_frame", "untyped_storage", "storage",
    "frombuffer", "data_ptr", "as_strided", "sys", "builtins", "importlib", "inspect", "gc", "library", "ops",
    "overrides", "cpp_extension", "hub", "set_",
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
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        line = f"line {getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            found += [f"{line}: imports {name}" for name in names if name.partition(".")[0] not in IMPORTABLE]
            parts = [part for name in names for part in name.split(".")[1:]]
            if isinstance(node, ast.ImportFrom):
                parts += [alias.name for alias in node.names]
            found += [f"{line}: imports {part}" for part in parts if _out_of_reach(part) or part.startswith("_C")]
        elif isinstance(node, ast.Name) and (node.id in FORBIDDEN_NAMES or _special(node.id)):
            found.append(f"{line}: {'calls' if id(node) in called else 'uses'} {node.id}")
        elif isinstance(node, ast.FunctionDef) and _special(node.name):
            found.append(f"{line}: defines {node.name}")
        elif isinstance(node, ast.Attribute):
            owner = _root(node)
            private = owner in libraries and node.attr.startswith("_") and node.attr not in SPECIAL
            system = isinstance(node.value, ast.Name) and node.attr not in OF_SYSTEM.get(node.value.id, {node.attr})
            modules = node.attr == "modules" and id(node) not in called
            if _out_of_reach(node.attr) or private or system or modules:
                found.append(f"{line}: reaches for .{node.attr}")
        found += [f"{line}: {reason}" for reason in _by_name(node, called)]
        found += _replacements(node, libraries)
    return found


def _special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__") and name not in SPECIAL


def _out_of_reach(name: str) -> bool:
    return name in FORBIDDEN_ATTRIBUTES or _special(name)


def _root(node: ast.AST) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _by_name(node: ast.AST, called: set[int]) -> list[str]:
    """Where attributes are had by a name that is text: only written out, or of `self`."""
    if isinstance(node, ast.Name) and node.id in ("getattr", "setattr", "delattr") and id(node) not in called:
        return [f"uses {node.id} without calling it"]
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
        return []
    if node.func.id not in ("getattr", "setattr", "delattr") or len(node.args) < 2:
        return []
    owner, name = node.args[:2]
    if isinstance(name, ast.Constant):
        return [f"reaches for .{name.value}"] if _out_of_reach(str(name.value)) or name.value == "modules" else []
    return (
        [] if isinstance(owner, ast.Name) and owner.id == "self" else [f"{node.func.id} with a name made at run time"]
    )


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
