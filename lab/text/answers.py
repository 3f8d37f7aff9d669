"""The answer in what a model wrote after "=": two readings, reported as two figures.

strict  the completion, stripped, must start with the answer (the released code's reading)
loose   the first match anywhere (the paper's reading, A.2)

A match is as long as the grammar allows. Digits are ASCII; a signed exponent is not of the grammar, so 1.5e-8 is no
scientific number (the released code drops the sign).
"""

from typing import Literal

from lab.numbers.representations import Representation

Reading = Literal["strict", "loose"]
READINGS: tuple[Reading, ...] = ("strict", "loose")


def extract(text: str, representation: Representation, reading: Reading) -> str | None:
    """The answer as written, or None where there is none."""
    pattern = representation.pattern
    match = pattern.match(text.strip()) if reading == "strict" else pattern.search(text)
    return match.group() if match else None


def decided(text: str, representation: Representation) -> bool:
    """Whether nothing that could follow changes either reading: an answer has come, and something after it."""
    match = representation.pattern.search(text)
    return match is not None and match.end() < len(text)
