"""Which errors of a model that adds lie where its window shows something that its training never showed.

    python experiments/unseen_windows.py RUN [RUN ...]

RUN is a run directory of `lab.pretrain` on add_integer with `model.window=1`. A digit of the answer is computed from
the digits of its own place and of the places beside it, so a long sum is no more than a row of small views. A view is
described by what either number has at a place (no digit, a zero, another digit) and by whether it has a digit at the
place below and at the place above. Every answer is followed from the ones digit to its first wrong digit. A run that
was trained with `format.pad=all` sees the shorter number with zeros in front, up to the length of the longer.
"""

import sys
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

from lab.benchmarks.results import Sample, read_samples
from lab.config.loading import load
from lab.config.pretraining import PretrainConfig
from lab.numbers.statistics import wilson
from lab.runs import Run


class Part(NamedTuple):
    """What one number shows at a place."""

    below: bool
    """Whether it has a digit at the place below; no place is below the ones."""
    here: str
    """"none", "zero" or "digit"."""
    above: bool
    """Whether it has a digit at the place above."""


View = tuple[Part, Part]


def part(number: str, place: int) -> Part:
    digits = number[::-1]
    here = "none" if place >= len(digits) else "zero" if digits[place] == "0" else "digit"
    return Part(0 < place <= len(digits), here, place + 1 < len(digits))


def view(a: str, b: str, place: int, padded: bool) -> View:
    if padded:
        a, b = a.zfill(len(b)), b.zfill(len(a))
    return part(a, place), part(b, place)


def possible(most: int, padded: bool) -> set[View]:
    """Every view of two numbers of at most so many digits: all that any training on such numbers can show."""
    shapes = [shape for digits in range(1, most + 1) for shape in product("05", repeat=digits)]
    numbers = ["".join(shape) for shape in shapes if shape[0] != "0" or len(shape) == 1]
    return {view(a, b, place, padded) for a in numbers for b in numbers for place in range(max(len(a), len(b)) + 2)}


def views(sample: Sample, padded: bool) -> Iterator[tuple[View, bool]]:
    """The view of each place of an answer, up to the first error, and whether the digit written there is wrong."""
    problem, given = sample.problem, sample.readings[""].given or ""
    for place in range(len(problem.answer) + 1):  # one more: the place at which the answer ends
        wanted, written = (text[::-1][place : place + 1] for text in (problem.answer, given))
        yield view(problem.a, problem.b or "", place, padded), wanted != written
        if wanted != written:
            return


def share(text: str, found: int, whole: int) -> None:
    value, low, high = (100 * figure for figure in wilson(found, whole)[:3]) if whole else (0, 0, 100)
    print(f"  {text}: {found:,} of {whole:,}, {value:.2f} % ({low:.2f}-{high:.2f})")


def main(folders: Sequence[str]) -> None:
    for folder in map(Path, folders):
        config = load(PretrainConfig, folder / "config.yaml")
        padded = config.format.pad == "all"
        seen = possible(config.data.lengths[1], padded)
        places = [one for sample in read_samples(Run(folder)) for one in views(sample, padded)]
        new = [wrong for shown, wrong in places if shown not in seen]
        known = [wrong for shown, wrong in places if shown in seen]
        print(f"{folder.name}: trained on at most {config.data.lengths[1]} digits{', padded' if padded else ''}")
        share("wrong where training cannot have shown the view", sum(new), len(new))
        share("wrong elsewhere", sum(known), len(known))


if __name__ == "__main__":
    main(sys.argv[1:])
