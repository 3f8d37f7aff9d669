"""How long may products and sums of many terms be for models that write running totals?

    python -m experiments.long-arithmetic.run RUN[,RUN ...] [sizes=5,10,20,50] [problems=16,16,16,4]
        [name=long_arithmetic]
                                          [control=RUN] [output=FOLDER]

RUN is a run directory of `lab.pretrain` with data.style=running_totals; give one for each seed, all of one task. Size N
is a product of two numbers of N digits, or a sum of N terms of N digits; `problems` is the number of problems of each
stratum at each size, and each seed is asked its own. In addition to uniform digits, there are hard strata: mostly nines
(four digits of five), mostly zeros, and problems that are long in one direction only, such as a product of N by 5
digits. `control` is a run without a window, which is tested only at sizes up to 20.

A problem is right if every word of its totals and the end of the answer are right. One pass checks this and agrees with
greedy generation. Prints exact match (95 % over seeds and problems) and the number of words that the model writes,
writes both to NAME.md, and draws exact match. Measurements are kept beside each run and are not repeated.
"""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from random import Random
from statistics import mean

from experiments.shared.arguments import own_and_listed, whole_numbers
from experiments.shared.kept import Kept
from experiments.shared.one_pass import right_tokens
from experiments.shared.publishing import beside_runs
from lab.config.schema import chosen
from lab.drawing import figures
from lab.drawing.tables import Shown, Table
from lab.errors import ConfigError, exit_cleanly
from lab.models.loading import load_scratch
from lab.numbers.sampling import Problem, posed
from lab.numbers.statistics import Estimate, seeds_proportion
from lab.numbers.tasks import SUM, Task
from lab.progress import quiet_libraries
from lab.text.running_totals import RunningTotals

SHORT = 5
"""Digits of the second factor of a product that is long in one direction, or terms of such a sum."""
LONGEST_OF_CONTROL = 20
"""The largest size of the control: without a window, a pass cannot be cut into pieces."""
FROM_PAPER = {"multiply_hard_integer": (15, "20 x 15"), SUM.key: (30, "30 x 30")}
"""The sizes to which Cho et al. 2024 (arXiv 2410.15787) extrapolate."""


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    quiet_libraries()
    results = beside_runs(arguments)
    keys = ("sizes", "problems", "name", "control", "output")
    given, runs = own_and_listed(arguments, "run directories of lab pretrain", *keys)
    sizes, counts = whole_numbers(given, "sizes", "5,10,20,50"), whole_numbers(given, "problems", "16,16,16,4")
    if len(sizes) != len(counts):
        raise ConfigError(f"{len(sizes)} sizes, but {len(counts)} numbers of problems: give one for each size")
    asked, name = dict(sorted(zip(sizes, counts, strict=True))), given.get("name", "long_arithmetic")
    folders = [Path(run) for run in runs]
    shares = [answered(folder, asked, place) for place, folder in enumerate(folders)]
    found = {stratum: pooled(shares, asked, [stratum]) for stratum in STRATA}
    found["long in both directions"] = pooled(shares, asked, LONG_IN_BOTH)
    found["all"] = pooled(shares, asked, list(STRATA))
    if "control" in given:
        small = {size: count for size, count in asked.items() if size <= LONGEST_OF_CONTROL}
        found["all, without the window"] = pooled([answered(Path(given["control"]), small, 0)], small, list(STRATA))
    (task,) = chosen(load_scratch(folders[0]).config.data.tasks)
    title = f"{task.key} with running totals: exact match (%), {len(shares)} seeds"
    rows: list[tuple[str | Shown, ...]] = [
        (row, *(Shown(one, "{:.1f} ({:.1f}-{:.1f})", 100) for one in cells), *[""] * (len(asked) - len(cells)))
        for row, cells in found.items()
    ]
    rows.append(("problems a stratum and seed", *map(str, asked.values())))
    written = [words_written(task, size) for size in asked]
    rows.append(("words written, uniform", *(f"{words:,}" for words in written)))
    results.show(Table(title, ("digits", *(f"{size} x {size}" for size in asked)), rows, 1), name)
    draw(found, list(asked), task, results.file(f"{name}.png"))


def pooled(
    shares: Sequence[dict[tuple[str, int], float]], asked: dict[int, int], strata: Sequence[str]
) -> list[Estimate]:
    """Exact match over some strata, by size."""
    return [
        seeds_proportion(
            [mean(share[stratum, size] for stratum in strata) for share in shares],
            count * len(strata),
            same_problems=False,
        )
        for size, count in asked.items()
    ]


def answered(folder: Path, asked: dict[int, int], place: int) -> dict[tuple[str, int], float]:
    """The share of right answers of a run by stratum and size.

    Args:
        folder: the run.
        asked: the number of problems of a stratum at each size.
        place: the run's place among the seeds, which decides which problems of the streams are its own.
    """
    run, kept = load_scratch(folder), Kept(folder / "long_arithmetic.json")
    (task,) = chosen(run.config.data.tasks)

    def share(stratum: str, size: int, first: int) -> float:
        problems = [problem_of(task, stratum, size, index) for index in range(first, first + asked[size])]
        return right_tokens(run, problems).count(None) / len(problems)

    found = {}
    for size, count in asked.items():
        first = place * count
        for stratum in STRATA:
            name, measure = f"{stratum}, {size}, {count} problems from {first}", partial(share, stratum, size, first)
            found[stratum, size] = kept.once(name, measure, "{:.3f}".format)
    return found


def problem_of(task: Task, stratum: str, size: int, index: int) -> Problem:
    """Problem `index` of an endless stream."""
    drawn = Random(f"{task.key} {stratum} {size} {index}")
    lengths = SHAPES.get(stratum, _square)(task, size, drawn)
    numbers = [STRATA[stratum](length, drawn) for length in lengths]
    a, b = ("+".join(numbers), None) if task is SUM else numbers
    problem = posed(task, a, b, size)
    assert problem is not None
    return problem


def words_written(task: Task, size: int) -> int:
    """The words that a model writes in a uniform problem of a size."""
    return len(RunningTotals([task]).answer(problem_of(task, "uniform", size, 0)))


def _uniform(length: int, drawn: Random) -> str:
    return str(drawn.randrange(10 ** (length - 1), 10**length))


def _mostly(digit: str) -> Callable[[int, Random], str]:
    """Numbers in which four of five digits are this one."""

    def number(length: int, drawn: Random) -> str:
        first, *others = _uniform(length, drawn)
        kept = [digit if drawn.random() < 0.8 else other for other in others]
        return "".join([first if digit == "0" or drawn.random() < 0.2 else digit, *kept])

    return number


STRATA: dict[str, Callable[[int, Random], str]] = {
    "uniform": _uniform,
    "mostly nines": _mostly("9"),
    "mostly zeros": _mostly("0"),
    "long and few": _uniform,
    "short and many": _uniform,
}
"""How the numbers of each stratum are drawn."""


def _square(task: Task, size: int, drawn: Random) -> list[int]:
    """How many digits each number has."""
    return [size] * (size if task is SUM else 2)


SHAPES: dict[str, Callable[[Task, int, Random], list[int]]] = {
    "long and few": lambda task, size, drawn: [size] * SHORT if task is SUM else [size, SHORT],
    "short and many": lambda task, size, drawn: (
        [drawn.randint(1, SHORT) for _ in range(size)] if task is SUM else [SHORT, size]
    ),
}


LONG_IN_BOTH = [stratum for stratum in STRATA if stratum not in SHAPES]
"""The strata with products of N by N digits, or sums of N terms of N digits."""


def draw(found: dict[str, list[Estimate]], sizes: Sequence[int], task: Task, path: Path) -> None:
    with figures.figure_at(path, figsize=(4.6, 3.0)) as figure:
        axes = figure.subplots()
        for color, (stratum, estimates) in zip(figures.COLORS, found.items(), strict=False):
            points = dict(zip(sizes, estimates, strict=False))
            figures.line_with_band(axes, points, color=color, label=stratum)
        size, label = FROM_PAPER.get(task.key, (0, ""))
        if size:
            axes.axvline(size, color="grey", lw=0.8, ls=":")
            axes.text(size, 0.04, f" Cho et al.: {label}", fontsize=7, color="grey")
        what = "terms of N digits, N of them" if task is SUM else "digits of both factors"
        axes.set(xlabel=what, ylabel="exact match", ylim=(-0.02, 1.02), xscale="log")
        axes.set_xticks(sizes, list(map(str, sizes)))
        axes.minorticks_off()
        axes.legend(fontsize=7)


if __name__ == "__main__":
    main(sys.argv[1:])
