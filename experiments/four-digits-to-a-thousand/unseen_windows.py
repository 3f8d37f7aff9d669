"""Which errors of an adder are at places where its window shows something that training never showed?

    python -m experiments.four-digits-to-a-thousand.unseen_windows RUN [RUN ...]

RUN is a run directory of `lab.pretrain` on add_integer with one layer and a window. The digit of a place is written by
the token of the place below. With a window of 1, that token sees the digits of its own place, of the place above (whose
digit it writes), and of the place below. So the model sees a long sum only as a row of small views. A view is described
by a mark for each place of either number: d for a digit, - beyond the number's end, ^ below its ones digit. Every
answer is followed from the ones digit to its first wrong digit. A run that was trained with `format.pad=all` sees zeros
in front of the shorter number, up to the length of the longer one.
"""

import sys
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

from lab.benchmarks.results import Sample, read_samples
from lab.config.loading import saved
from lab.config.pretraining import PretrainConfig
from lab.errors import exit_cleanly
from lab.numbers.statistics import wilson
from lab.runs import Run

View = tuple[str, str]


def view(a: int, b: int, place: int, window: int, padded: bool) -> View:
    """What the token that writes the digit of a place sees of numbers of `a` and `b` digits."""
    seen = range(place - 1 - window, place + window)
    if padded:
        a = b = max(a, b)
    return _marks(a, seen), _marks(b, seen)


def _marks(digits: int, places: range) -> str:
    return "".join("^" if place < 0 else "d" if place < digits else "-" for place in places)


def shown(most: int, window: int, padded: bool) -> set[View]:
    """Every view of two numbers of at most `most` digits: all that any training on such numbers can show."""
    lengths = range(1, most + 1)
    return {
        view(a, b, place, window, padded)
        for a, b in product(lengths, lengths)
        for place in range(max(a, b) + 2)  # a last carry, and the end of the answer after it
    }


def digits_needed(window: int, padded: bool) -> int:
    """The fewest digits of training that show every view of longer numbers."""
    long = 4 * window + 8  # nothing new comes after that
    return next(most for most in range(1, long) if shown(most, window, padded) == shown(long, window, padded))


def views(sample: Sample, window: int, padded: bool) -> Iterator[tuple[View, bool]]:
    """The view of each place of an answer, up to the first error, and whether the digit written there is wrong."""
    problem, given = sample.problem, sample.readings[""].given or ""
    for place in range(len(problem.answer) + 1):  # one more: the place at which the answer ends
        wanted, written = (text[::-1][place : place + 1] for text in (problem.answer, given))
        yield view(len(problem.a), len(problem.b or ""), place, window, padded), wanted != written
        if wanted != written:
            return


def share(text: str, found: int, whole: int) -> None:
    value, low, high = (100 * figure for figure in wilson(found, whole)[:3]) if whole else (0, 0, 100)
    print(f"  {text}: {found:,} of {whole:,}, {value:.2f} % ({low:.2f}-{high:.2f})")


@exit_cleanly
def main(folders: Sequence[str]) -> None:
    for folder in map(Path, folders):
        config = saved(PretrainConfig, folder / "config.yaml")
        window = config.parts["window"].reach  # type: ignore[attr-defined]
        padded, most = config.format.pad == "all", config.data.lengths[1]
        training = shown(most, window, padded)
        places = [one for sample in read_samples(Run(folder)) for one in views(sample, window, padded)]
        new = [wrong for found, wrong in places if found not in training]
        known = [wrong for found, wrong in places if found in training]
        needed = digits_needed(window, padded)
        print(
            f"{folder.name}: trained on at most {most} digits{', padded' if padded else ''}; {needed} show every view"
        )
        share("wrong where training cannot have shown the view", sum(new), len(new))
        share("wrong elsewhere", sum(known), len(known))


if __name__ == "__main__":
    main(sys.argv[1:])
