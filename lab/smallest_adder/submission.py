"""A trained adder as the one file that the challenge asks for: the class it was trained as, and its weights as numbers.

Nothing is rewritten on the way: the class and the two codecs are copied from the lab's source, and a weight is written
so that it is read back bit for bit.
"""

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path

from torch import nn

from lab.smallest_adder.models import GptAdder, ReducedAdder, TinyAdder
from lab.smallest_adder.rows import ANSWERS, decode, encode

SOURCES: dict[object, str] = {
    part: inspect.getsource(part).rstrip() for part in (GptAdder, TinyAdder, ReducedAdder, encode, decode)
}
"""The sources, read at import, so that they are those of the trained classes even if a file changes during training."""

TEMPLATE = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")


def submission(model: nn.Module, settings: Mapping[str, object], description: str) -> str:
    """The source of a submission.

    `model` is one of models.py, built from `settings`; `description`, plain text, says how it was trained.
    The tokens are 0 to 9, a digit each (lab/smallest_adder/rows.py).
    """
    arguments = ", ".join(f"{name}={value!r}" for name, value in settings.items())
    weights = {name: parameter.detach().tolist() for name, parameter in model.named_parameters()}
    return TEMPLATE.format(
        description=description,
        answers=ANSWERS,
        model=SOURCES[type(model)],
        name=type(model).__name__,
        arguments=arguments,
        weights="\n".join(f'    "{name}": {_literal(value)},' for name, value in weights.items()),
        encode=SOURCES[encode],
        decode=SOURCES[decode],
    )


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
