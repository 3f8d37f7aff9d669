"""How long the problems of each task may be for one model of many tasks. Each answer is checked in one pass.

    python experiments/many_tasks.py RUN[,RUN ...] [digits=10,20,50,100] [problems=100] [publish=true] [output=FOLDER]

RUN is a run directory of `lab.pretrain`, one a seed. Besides the uniform problems of each task there are hard ones, of
long carries (lab/numbers/additions.py). Prints exact match by task and length, mean over the seeds (95 %, the wider of
Student's over the seeds and Wilson's over their problems), writes it to many_tasks.md, and draws it as a heat map.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from shared.one_pass import right_tokens
from shared.publishing import take_results
from shared.streams import STREAMS

from lab.benchmarks.length_curves.scoring import unseen_problems
from lab.config.schema import chosen
from lab.drawing.figures import figure_at
from lab.drawing.tables import Shown, Table
from lab.models.loading import ScratchRun, load_scratch
from lab.numbers.additions import STRATA
from lab.numbers.sampling import Problem
from lab.numbers.statistics import Estimate, seeds_proportion
from lab.progress import quiet_libraries

ROOT = Path(__file__).parents[1]


def main(arguments: Sequence[str]) -> None:
    quiet_libraries()
    results, rest = take_results(arguments, ROOT / "experiments" / "results")
    given = dict(part.split("=", 1) for part in rest if "=" in part)
    lengths = [int(part) for part in given.get("digits", "10,20,50,100").split(",")]
    count = int(given.get("problems", 100))
    runs = [load_scratch(Path(name)) for part in rest if "=" not in part for name in part.split(",")]
    found: dict[str, list[Estimate]] = {}
    for length in lengths:
        for task, problems in asked(runs[0], length, count):
            shares = [right_tokens(run, problems).count(None) / len(problems) for run in runs]
            found.setdefault(task, []).append(seeds_proportion(shares, len(problems)))
            print(task, length, *(f"{100 * share:.0f}" for share in shares), flush=True)
    title = f"One model of many tasks: exact match (%), {count} problems a task, length and seed ({len(runs)} seeds)"
    rows = [(task, *(Shown(one, "{:.0f} ({:.0f}-{:.0f})", 100) for one in row)) for task, row in found.items()]
    results.show(Table(title, ("task", *(f"d{length}" for length in lengths)), rows, 1), "many_tasks")
    draw(found, lengths, title, results.file("many_tasks.png"))


def asked(run: ScratchRun, length: int, count: int) -> Iterator[tuple[str, list[Problem]]]:
    """The problems of a length: of each task that the run was trained on, and of its strata if it has some."""
    tasks = [task.key for task in chosen(run.config.data.tasks)]
    for task, cell in zip(tasks, run.config.data.cells_of([length]), strict=True):
        yield task, unseen_problems([cell], run.config.seed, count)
    for task in (task for task in tasks if task in STREAMS):
        for stratum in STRATA:
            yield f"{task}, {stratum}", [STREAMS[task](stratum, length, 0, index) for index in range(count)]


def draw(found: dict[str, list[Estimate]], lengths: Sequence[int], title: str, path: Path) -> None:
    with figure_at(path, figsize=(4.2, 0.24 * len(found) + 1.2)) as figure:
        axes = figure.subplots()
        axes.imshow(
            [[one.value for one in row] for row in found.values()], vmin=0, vmax=1, aspect="auto", cmap="Greens"
        )
        for place, row in enumerate(found.values()):
            for column, one in enumerate(row):
                color = "white" if one.value > 0.6 else "black"
                axes.text(column, place, f"{100 * one.value:.0f}", ha="center", va="center", color=color, size=7)
        axes.set_yticks(range(len(found)), list(found))
        axes.set_xticks(range(len(lengths)), [str(length) for length in lengths])
        axes.set_xlabel("digits (trained on at most 10)")
        axes.set_title(title.split(",")[0])


if __name__ == "__main__":
    main(sys.argv[1:])
