"""The number lab: how language models understand numbers, measured, tuned and opened up.

import lab

model = lab.load("zoo/adds-4-digits")
model.ask("12 + 34")
result = lab.evaluate(model, lab.problems("add_integer", digits=4, n=100))
result.plot()
lab.probe(model, digits=[3, 4])
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lab.api import evaluate, load, probe, problems

__all__ = ["evaluate", "load", "probe", "problems"]


def __getattr__(name: str) -> Any:
    """The functions of `lab.api`, which is imported only if one of them is used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from lab.progress import quiet_libraries

    quiet_libraries()  # before the libraries are imported, because some of them print on import
    from lab import api

    return getattr(api, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Lab(ModuleType):
    """Makes sure that `lab.evaluate` and `lab.probe` remain functions when the modules of these names, which are
    commands, are imported."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in __all__ and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Lab
