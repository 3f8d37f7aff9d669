"""How many problems runs from scratch answer right: problems of their tasks as NUPA draws them, and hard problems.

Sums and differences are hard if they have long carries (lab/numbers/additions.py), and maxima and minima are hard if
the two numbers differ only in their last digit. Each answer is checked in one pass (`one_pass`); where a model writes
a trace first, it is asked, because a trace may differ from the rule's and still end in the right answer.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import lab
from experiments.shared.kept import Kept
from experiments.shared.one_pass import right_tokens
from experiments.shared.streams import STREAMS
from experiments.shared.variants import with_settings
from lab.benchmarks.length_curves.scoring import unseen_problems
from lab.config.schema import chosen
from lab.models.loading import ScratchRun, load_scratch
from lab.numbers.additions import STRATA
from lab.numbers.sampling import Problem, posed
from lab.numbers.tasks import task


def answered(folder: Path, lengths: Sequence[int], count: int, ids: int) -> dict[tuple[str, int], float]:
    """The share of right answers of a run by row and length. Measurements are kept beside the run and not repeated."""
    run, kept = load_scratch(folder), Kept(folder / "answered.json")
    right = asked_to_write(folder) if run.config.data.style == "rule_following" else checked(run, ids)
    return {
        (row, length): kept.once(
            f"{row}, {length} digits, {count} problems, {ids} ids",
            lambda problems=problems: right(problems) / len(problems),
            "{:.3f}".format,
        )
        for length in lengths
        for row, problems in asked(run, length, count)
    }


def checked(run: ScratchRun, ids: int) -> Callable[[Sequence[Problem]], int]:
    """Counts the right answers of a model with that many position ids."""
    model = with_settings(run, largest=ids)
    return lambda problems: right_tokens(model, problems).count(None)


def asked_to_write(folder: Path) -> Callable[[Sequence[Problem]], int]:
    """Counts the right answers of a model that writes them, with its traces."""
    model = lab.load(str(folder))
    return lambda problems: sum(sample.right for sample in lab.evaluate(model, problems).samples)


def asked(run: ScratchRun, length: int, count: int) -> Iterator[tuple[str, list[Problem]]]:
    """The problems of a length: of each task that the run was trained on, then the hard ones."""
    tasks = [one.key for one in chosen(run.config.data.tasks)]
    for key, cell in zip(tasks, run.config.data.tested_cells([length]), strict=True):
        yield key, unseen_problems([cell], run.config.seed, count)
    for key in (key for key in tasks if key in STREAMS):
        for stratum in STRATA:
            yield f"{key}, {stratum}", [STREAMS[key](stratum, length, 0, index) for index in range(count)]
    for key in (key for key in tasks if key.startswith(("max_", "min_")) and "hard" not in key):
        yield f"{key}, last digit", [nearly_equal(key, length, index) for index in range(count)]


def nearly_equal(key: str, length: int, index: int) -> Problem:
    """A maximum or minimum of two numbers that differ only in their last digit."""
    drawn = random.Random(f"{key} {length} {index}")
    digits = str(drawn.randrange(10 ** (length - 1), 10**length))
    start = f"{digits}.{str(drawn.randrange(10**length)).zfill(length)}" if key.endswith("float") else digits
    a, b = (f"{start[:-1]}{last}" for last in drawn.sample(range(1, 10), 2))
    problem = posed(task(key), a, b, length)
    assert problem is not None
    return problem
