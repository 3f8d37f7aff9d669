"""How long the problems of each task may be for one model of many tasks. Each answer is checked in one pass, or
written by the model if it writes a trace first.

    python -m experiments.many_tasks RUN[,RUN ...] [digits=10,20,50,100] [problems=100] [ids=256] [name=many_tasks]
        [output=FOLDER]

RUN is a run directory of `lab.pretrain`, one a seed. Besides the problems of each task as NUPA draws them there are
hard ones: sums and differences of long carries (lab/numbers/additions.py), and maxima and minima of two numbers that
differ only in their last digit. `ids` is how many coupled position ids there are; more make room for longer numbers and
change nothing else, because relative keys know only small distances (a model that writes traces keeps its own number).
Prints exact match by task and length, mean over the seeds (95 % over seeds and problems), writes it to NAME.md, and
draws it as a heat map. Measurements are kept beside each run and are not repeated.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.shared.answered import answered
from experiments.shared.arguments import own_and_listed, whole_number, whole_numbers
from experiments.shared.heat_map import heat_map
from experiments.shared.kinds_of_sums import in_words
from experiments.shared.publishing import beside_runs
from lab.drawing.figures import figure_at
from lab.drawing.tables import Shown, Table, counted
from lab.errors import exit_cleanly
from lab.numbers.statistics import Estimate, seeds_proportion
from lab.progress import quiet_libraries


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    quiet_libraries()
    results = beside_runs(arguments)
    keys = ("digits", "problems", "ids", "name", "output")
    given, runs = own_and_listed(arguments, "run directories of lab pretrain", *keys)
    lengths = whole_numbers(given, "digits", "10,20,50,100")
    count, ids = whole_number(given, "problems", 100), whole_number(given, "ids", 256)
    shares = [answered(Path(run), lengths, count, ids) for run in runs]
    hard = [row for row, _ in shares[0] if ", " in row]  # only of these, all seeds have the same problems
    found = {
        row: [
            seeds_proportion([share[row, length] for share in shares], count, same_problems=row in hard)
            for length in lengths
        ]
        for row, length in shares[0]
        if length == lengths[0]
    }
    tasks = counted(len([row for row in found if ", " not in row]), "task")
    seeds = counted(len(shares), "seed")
    title = f"One model of {tasks}, {seeds}: exact match (%), {count} problems a task, length and seed"
    rows = [
        (in_words(row), *(Shown(one, "{:.1f} ({:.1f}-{:.1f})", 100) for one in cells)) for row, cells in found.items()
    ]
    right, count_of_all = sum(sum(share.values()) for share in shares) * count, sum(map(len, shares)) * count
    print(f"{right:,.0f} of {count_of_all:,} right")
    name = given.get("name", "many_tasks")
    results.show(Table(title, ("task", *(f"{length} digits" for length in lengths)), rows, 1), name)
    draw(found, lengths, title, results.file(f"{name}.png"))


def draw(found: dict[str, list[Estimate]], lengths: Sequence[int], title: str, path: Path) -> None:
    with figure_at(path, figsize=(4.6, 0.24 * len(found) + 1.2)) as figure:
        axes = figure.subplots()
        values = [[one.value for one in row] for row in found.values()]
        heat_map(axes, values, [*map(in_words, found)], list(map(str, lengths)), size=7)
        axes.set_xlabel("digits (trained on at most 6)")
        axes.set_title(title.partition(":")[0])


if __name__ == "__main__":
    main(sys.argv[1:])
