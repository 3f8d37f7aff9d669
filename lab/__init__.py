"""The number lab: how language models understand numbers, measured, tuned and opened up.

import lab

model = lab.load("checkpoints/scratch_add")
model.ask("12 + 34")
problems = lab.problems("add_integer", digits=5, n=100)
lab.evaluate(model, problems).plot()
lab.probe(model, digits=[2, 3])
"""

import sys
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lab.api import Evaluation, Model, Probed
    from lab.numbers.sampling import Problem

__all__ = ["evaluate", "load", "probe", "problems"]


def load(name: str, **settings: Any) -> "Model":
    """Any model, ready to be asked: see `lab.api.load`."""
    return _api().load(name, **settings)


def problems(task: str, digits: int, n: int = 100, seed: int = 0) -> "list[Problem]":
    """Distinct test problems of one task and length: see `lab.api.problems`."""
    return _api().problems(task, digits, n, seed)


def evaluate(model: "Model | str", problems: "Sequence[Problem]") -> "Evaluation":
    """What a model answers to problems, and how good the answers are: see `lab.api.evaluate`."""
    return _api().evaluate(model, problems)


def probe(model: "Model | str", instruments: Sequence[str] = ("alignment",), **settings: Any) -> "Probed":
    """What instruments find in a model that adds: see `lab.api.probe`."""
    return _api().probe(model, instruments, **settings)


def _api() -> Any:
    from lab.progress import quiet_libraries

    quiet_libraries()  # before the libraries are imported, because some of them print on import
    from lab import api

    return api


class _Lab(ModuleType):
    """Keeps `lab.evaluate` and `lab.probe` functions when the commands of these names, lab/evaluate.py and
    lab/probe.py, are imported."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in __all__ and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Lab
