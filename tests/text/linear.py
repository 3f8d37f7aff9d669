"""Checks that processing a text takes time in proportion to its length."""

import time
from collections.abc import Callable

MEGABYTE = 2**20
SECONDS_A_MEGABYTE = 0.05
_SLACK = 0.002

ATOMS = (
    *("1", "x", " ", ".", "/", "e", "=", "+", "*", ",", "<", "\n", "\\", "\N{ARABIC-INDIC DIGIT THREE}", "\ud800"),
    *(
        "1 ",
        "1.",
        "1/",
        "1e",
        "1,",
        "1+",
        "1=",
        "1.1 ",
        "1.1e",
        "1/x",
        "1,111",
        "10 ",
        "10^",
        "1\\,",
        "<0.1>1",
        "<0.1>1.",
        "<1",
    ),
    *(
        "**1",
        "**1**",
        "\\boxed{",
        "\\boxed{1}",
        "\\boxed{1,",
        "}",
        "the answer is",
        "<think>",
        "</think>",
        "So the answer is ",
    ),
)
"""A text is one of these, repeated."""


def repeated(atom: str, length: int) -> str:
    return (atom * (length // len(atom) + 1))[:length]


def assert_linear(
    do: Callable[[str], object], atom: str, longest: int = MEGABYTE, seconds: float = SECONDS_A_MEGABYTE
) -> None:
    """`seconds`: allowed for a megabyte. Lengths double, so what grows faster is found before it takes minutes."""
    length = 2**12
    while length <= longest:
        text = repeated(atom, length)
        allowed = seconds * length / MEGABYTE + _SLACK
        assert min(_seconds_until(do, text, allowed)) <= allowed, f"{length} characters of {atom!r}"
        length *= 2


def _seconds_until(do: Callable[[str], object], text: str, allowed: float) -> list[float]:
    """Processor times of up to five tries, until one of them is short enough."""
    found: list[float] = []
    while len(found) < 5 and (not found or min(found) > allowed):
        began = time.thread_time()
        do(text)
        found.append(time.thread_time() - began)
    return found
