"""A trained adder as the one file that the challenge asks for: the class it was trained as, and its weights as numbers.

Nothing is rewritten on the way: the class and the two codecs are copied from the lab's source, and a weight is written
so that it is read back bit for bit.
"""

import inspect
from collections.abc import Mapping, Sequence

from torch import nn

from lab.smallest_adder.models import GptAdder, ReducedAdder, TinyAdder
from lab.smallest_adder.rows import ANSWERS, decode, encode

SOURCES: dict[object, str] = {
    part: inspect.getsource(part) for part in (GptAdder, TinyAdder, ReducedAdder, encode, decode)
}
"""The sources, read at import, so that they are those of the trained classes even if a file changes during training."""

HEADER = '''"""{description}

Written by `python -m lab.adder train`; the weights come from gradient descent, from random initial ones.
"""

import math

import torch
from torch import nn

CATEGORY = "trained"
VOCAB_SIZE = 10
MAX_OUTPUT_LEN = {answers}

'''


def submission(model: nn.Module, settings: Mapping[str, object], description: str) -> str:
    """The source of a submission.

    `model` is one of models.py, built from `settings`; `description`, plain text, says how it was trained.
    The tokens are 0 to 9, a digit each (lab/smallest_adder/rows.py).
    """
    arguments = ", ".join(f"{name}={value!r}" for name, value in settings.items())
    weights = {name: parameter.detach().tolist() for name, parameter in model.named_parameters()}
    parts = [
        HEADER.format(description=description, answers=ANSWERS),
        SOURCES[type(model)],
        "",
        "WEIGHTS = {",
        *(f'    "{name}": {_literal(value)},' for name, value in weights.items()),
        "}",
        "",
        "",
        "def build_model() -> nn.Module:",
        f"    model = {type(model).__name__}({arguments})",
        "    model.load_state_dict({name: torch.tensor(values) for name, values in WEIGHTS.items()})",
        "    return model.eval()",
        "",
        "",
        SOURCES[encode],
        "",
        SOURCES[decode],
    ]
    return "\n".join(parts).replace("\n\n\n\n", "\n\n\n")


def _literal(value: float | Sequence, depth: int = 4) -> str:
    """Numbers as Python source, with a line for each row. They are read back exactly: Python writes enough digits of a
    double, and every float32 is a double."""
    if not isinstance(value, list):
        return repr(value)
    if not value or not isinstance(value[0], list):
        return f"[{', '.join(map(repr, value))}]"
    inner = " " * (depth + 4)
    rows = "".join(f"{inner}{_literal(row, depth + 4)},\n" for row in value)
    return f"[\n{rows}{' ' * depth}]"
