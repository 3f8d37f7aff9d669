"""Ways to ask for a sum in running text (templates.yaml): some are for training, others are kept for testing.

A template gives the text before, between and after the two numbers. The numbers stay as they are written, for instance
reversed, so templates work with every format of integers. There are also templates of random words, by which a model
learns that the words around a sum do not matter:

    "instance of the class, and {a} are converted {b} returned as a tuple of"
"""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import yaml

from lab.numbers.philox import philox
from lab.text import docstrings
from lab.text.examples import Example
from lab.text.prompts import around_operands

_SETS = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))

TRAINING: tuple[str, ...] = tuple(_SETS["training"])
"""Templates that training problems use, besides the benchmark's own words."""
VALIDATION: tuple[str, ...] = tuple(_SETS["validation"])
"""Templates that no training problem uses; designs may be compared on them."""
HELD_OUT: tuple[str, ...] = tuple(_SETS["held_out"])
"""Templates that no training problem uses. No design was chosen by its score on them, but errors in some of them
suggested designs, such as even spacing (lab/parts/even_spacing.py)."""
FRESH: tuple[str, ...] = tuple(_SETS["fresh"])
"""Further templates that no training problem uses. They were written after the errors in HELD_OUT had suggested other
designs, and no design was chosen on them either."""


def worded(template: str, item: Example) -> Example:
    """An example of integer addition, rewritten in the words of a template."""
    before, between, after = around_operands(item.problem)
    a, _, b = item.raw.removeprefix(before).removesuffix(after).partition(between)
    return Example(template.format(a=a, b=b), item.completion, item.problem)


def random_template(seed: int) -> str:
    """Words of docstrings before, between and after the numbers of a sum: 0-12, 1-10 and 1-10 in a row."""
    words = _documented_words()
    raw = map(int, philox("words around a sum", seed).random_raw(6))
    parts: list[Sequence[str]] = []
    for fewest, most in ((0, 12), (1, 10), (1, 10)):
        count, start = fewest + next(raw) % (most - fewest + 1), next(raw) % (len(words) - most)
        parts.append(words[start : start + count])
    before, between, after = parts
    return " ".join([*before, "{a}", *between, "{b}", *after])


@functools.cache
def _documented_words() -> tuple[str, ...]:
    """All words of the docstrings for training that have no digit. Braces would be fields of a template."""
    words = docstrings.docstrings(docstrings.TRAINING).split()
    return tuple(word for word in words if not any(char.isdigit() or char in "{}" for char in word))


class ManyTemplates(NamedTuple):
    """Draws the words of a problem: those that it has, those of a training template, or random ones."""

    own: int = 1
    """How many templates the problem's own words count as in the draw."""
    random: int = 0
    """How many templates random words count as."""

    def __call__(self, item: Example, seed: int) -> Example:
        choice = philox("template", seed).random_raw() % (len(TRAINING) + self.random + self.own)
        if choice < len(TRAINING):
            return worded(TRAINING[choice], item)
        return worded(random_template(seed), item) if choice < len(TRAINING) + self.random else item
