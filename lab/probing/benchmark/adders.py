"""Every adder of the benchmark by name: those of each file in `families`."""

import pkgutil
from collections.abc import Callable
from importlib import import_module
from typing import Any

from lab.probing.benchmark import families
from lab.probing.benchmark.known import Adder


def adders() -> dict[str, Callable[[int], Adder[Any]]]:
    """For each name, a function that makes the adder from a seed."""
    found: dict[str, Callable[[int], Adder[Any]]] = {}
    for module in pkgutil.iter_modules(families.__path__):
        found |= import_module(f"{families.__name__}.{module.name}").ADDERS
    return found
