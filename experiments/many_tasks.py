"""How long the problems of each task may be for one model of many tasks. Each answer is checked in one pass.

    python experiments/many_tasks.py RUN[,RUN ...] [digits=10,20,50,100] [problems=100] [ids=256] [name=many_tasks]
                                     [publish=true] [output=FOLDER]

RUN is a run directory of `lab.pretrain`, one a seed. Besides the problems of each task as NUPA draws them there are
hard ones: sums and differences of long carries (lab/numbers/additions.py), and maxima and minima of two numbers that
differ only in their last digit. `ids` is how many coupled position ids there are; more make room for longer numbers and
change nothing else, because relative keys know only small distances. Prints exact match by task and length, mean over
the seeds (95 %, the wider of Student's over the seeds and Wilson's over their problems), writes it to NAME.md, and
draws it as a heat map. Measurements are kept beside each run and are not repeated.
"""

import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from shared.arguments import own_and_others
from shared.heat_map import heat_map
from shared.kept import Kept
from shared.one_pass import right_tokens
from shared.publishing import take_results
from shared.streams import STREAMS
from shared.variants import with_settings

from lab.benchmarks.length_curves.scoring import unseen_problems
from lab.config.schema import chosen
from lab.drawing.figures import figure_at
from lab.drawing.tables import Shown, Table
from lab.models.loading import ScratchRun, load_scratch
from lab.numbers.additions import STRATA
from lab.numbers.sampling import Problem, posed
from lab.numbers.statistics import Estimate, seeds_proportion
from lab.numbers.tasks import task
from lab.progress import quiet_libraries

ROOT = Path(__file__).parents[1]


def main(arguments: Sequence[str]) -> None:
    quiet_libraries()
    results, rest = take_results(arguments, ROOT / "experiments" / "results")
    given, runs = own_and_others(rest, "digits", "problems", "ids", "name", "output")
    lengths = [int(part) for part in given.get("digits", "10,20,50,100").split(",")]
    count, ids = int(given.get("problems", 100)), int(given.get("ids", 256))
    shares = [answered(Path(name), lengths, count, ids) for part in runs for name in part.split(",")]
    found = {
        row: [seeds_proportion([share[row, length] for share in shares], count) for length in lengths]
        for row, length in shares[0]
        if length == lengths[0]
    }
    title = f"One model of many tasks: exact match (%), {count} problems a task, length and seed ({len(shares)} seeds)"
    rows = [(row, *(Shown(one, "{:.1f} ({:.1f}-{:.1f})", 100) for one in cells)) for row, cells in found.items()]
    right, count_of_all = sum(sum(share.values()) for share in shares) * count, sum(map(len, shares)) * count
    print(f"{right:,.0f} of {count_of_all:,} right")
    name = given.get("name", "many_tasks")
    results.show(Table(title, ("task", *(f"{length} digits" for length in lengths)), rows, 1), name)
    draw(found, lengths, title, results.file(f"{name}.png"))


def answered(folder: Path, lengths: Sequence[int], count: int, ids: int) -> dict[tuple[str, int], float]:
    """The share of right answers of a run by row and length. What was measured before is kept beside the run."""
    run, kept = with_settings(load_scratch(folder), largest=ids), Kept(folder / "many_tasks.json")
    return {
        (row, length): kept.once(
            f"{row}, {length} digits, {count} problems, {ids} ids",
            lambda problems=problems: right_tokens(run, problems).count(None) / count,
            "{:.3f}".format,
        )
        for length in lengths
        for row, problems in asked(run, length, count)
    }


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


def draw(found: dict[str, list[Estimate]], lengths: Sequence[int], title: str, path: Path) -> None:
    with figure_at(path, figsize=(4.6, 0.24 * len(found) + 1.2)) as figure:
        axes = figure.subplots()
        values = [[one.value for one in row] for row in found.values()]
        heat_map(axes, values, list(found), list(map(str, lengths)), size=7)
        axes.set_xlabel("digits (trained on at most 6)")
        axes.set_title(title.split(",")[0])


if __name__ == "__main__":
    main(sys.argv[1:])
