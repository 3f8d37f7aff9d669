"""How many numbers a declared adder has. Does not import torch."""

from typing import Any, NamedTuple

import numpy as np

from lab.adders.references import is_number
from lab.adders.spec import Adder

SIZES = {"heads", "kv_heads", "times"}


class Count(NamedTuple):
    parameters: int
    """By the challenge's rule: the numbers in tables, each once."""
    literals: int
    """The other numbers in the model, such as a fixed period; sizes, such as the number of heads, are none."""

    @property
    def all(self) -> int:
        return self.parameters + self.literals


def count(adder: Adder) -> Count:
    """Counts all tables, whether the model uses them or not, and every number that is written in the model."""
    parameters = sum(np.size(table) for table in adder.numbers.values())
    return Count(parameters, _literals(adder.model.model_dump(exclude_defaults=True)))


def _literals(value: Any) -> int:
    if isinstance(value, dict):
        return sum(_literals(part) for key, part in value.items() if key not in SIZES)
    if isinstance(value, list):
        return sum(map(_literals, value))
    return int(is_number(value))
