"""Ordinary text that every machine has: the docstrings of Python's standard library.

Versions of Python differ in some docstrings, and then in everything that is drawn from this text. The version is in the
environment.json of each run.
"""

import importlib
import inspect
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

_MODULES = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))

TRAINING: tuple[str, ...] = tuple(_MODULES["training"])
HELD_OUT: tuple[str, ...] = tuple(_MODULES["held_out"])
"""The modules whose docstrings are used in training, and those whose docstrings are used only for testing."""
_SHORTEST = 200
"""Only docstrings with more characters than this are used, because shorter ones say little."""


def docstrings(modules: Sequence[str], besides: Sequence[str] = ()) -> str:
    """The long docstrings (see `_SHORTEST`) of the classes and functions in these modules, and of the members of these
    classes, without repetition. (A member that is a constant has the docstring of its type.)

    Args:
        modules: the names of the modules.
        besides: other modules, whose docstrings are left out. Modules share some, because they import from each other.
    """
    others = {text for name in besides for text in _docstrings(name)}
    found = (text for name in modules for text in _docstrings(name) if text not in others)
    return "\n\n".join(inspect.cleandoc(text) for text in dict.fromkeys(found) if len(text) > _SHORTEST)


def longest_number() -> int:
    """How many digits the longest number of TRAINING has."""
    return max(map(len, re.findall(r"[0-9]+", docstrings(TRAINING))), default=0)


def _docstrings(name: str) -> Iterator[str]:
    try:
        module = importlib.import_module(name)
    except ImportError:  # some versions of Python lack the module
        return
    for _, item in sorted(inspect.getmembers(module, lambda item: inspect.isclass(item) or inspect.isfunction(item))):
        if (item.__module__ or "").partition(".")[0] == name.partition(".")[0]:
            for part in (item, *(vars(item).values() if inspect.isclass(item) else ())):
                if isinstance(text := getattr(part, "__doc__", None), str):
                    yield text
