"""Small models that follow rules, compared with the same models answering directly: accuracy and cost by task and
length.

    python -m experiments.rules_scratch [seeds=0,1,2] [only=NAME/NAME] [table=rules_scratch]
                                        [key=value ...]

Trains configs/rules_scratch.yaml with each seed in each of WAYS, with the same updates and problems; finished runs are
not trained again. Other keys change the runs' config. Prints exact match, mean over the seeds (95 %, the wider of
Student's over the seeds and Wilson's over their problems), and the mean number of words written at the shortest length.
Writes a table and a figure named after `table`.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

from experiments.shared.arguments import own_and_others, some_of
from experiments.shared.curves import curves
from experiments.shared.publishing import beside_runs
from experiments.shared.training import trained
from lab.benchmarks.results import Sample, read_samples
from lab.config.loading import load
from lab.config.pretraining import PretrainConfig
from lab.drawing.tables import Table, percent
from lab.errors import exit_cleanly
from lab.numbers.statistics import Estimate, seeds_proportion
from lab.progress import quiet_libraries
from lab.runs import Run

ROOT = Path(__file__).parents[1]
CONFIG = ROOT / "configs" / "rules_scratch.yaml"
WAYS: dict[str, list[str]] = {
    "bare": [],
    "results": ["data.rules.detail=results"],
    "direct": ["data.rules.detail=answer"],
}
Cells = dict[tuple[str, int], list[Sample]]


@exit_cleanly
def main(arguments: list[str]) -> None:
    quiet_libraries()
    results = beside_runs(arguments)
    given, keys = own_and_others(arguments, "seeds", "only", "table")
    table = given.get("table", "rules_scratch")
    seeds, ways = given.get("seeds", "0,1,2").split(","), some_of(WAYS, given.get("only"))
    found = {way: [answered(ran(way, seed, keys)) for seed in seeds] for way in ways}
    shares = {way: {cell: share([one[cell] for one in seeds]) for cell in seeds[0]} for way, seeds in found.items()}
    tasks = list(dict.fromkeys(task for task, _ in shares[ways[0]]))
    lengths = sorted({length for _, length in shares[ways[0]]})
    rows = [
        (task, way, *(percent(shares[way][task, length]) for length in lengths),
         f"{words(found[way], task, lengths[0]):.1f}")
        for task in tasks
        for way in ways
    ]  # fmt: skip
    title = f"Traces against direct answers after the same updates: exact match (%), {len(seeds)} seeds"
    columns = ("task", "answers", *(f"{length} digits" for length in lengths), f"words at {lengths[0]} digits")
    results.show(Table(title, columns, rows, 2), table)
    curves(shares, tasks, lengths, 4, results.file(f"{table}.png"))


def ran(way: str, seed: str, keys: Sequence[str]) -> Run:
    """A run of `lab.pretrain`; trains it unless it is finished."""
    changes = [*WAYS[way], *keys, f"name={way}_{seed}", f"seed={seed}", "resume=true"]
    return Run(trained(load(PretrainConfig, CONFIG, changes)))


def answered(run: Run) -> Cells:
    """What a run answered, by task and length."""
    cells: Cells = {}
    for sample in read_samples(run):
        cells.setdefault((sample.task, sample.length), []).append(sample)
    return cells


def share(seeds: Sequence[Sequence[Sample]]) -> Estimate:
    return seeds_proportion(
        [mean(sample.right for sample in samples) for samples in seeds], len(seeds[0]), same_problems=False
    )


def words(seeds: Sequence[Cells], task: str, length: int) -> float:
    """The mean number of words written for an answer."""
    return mean(sample.completion.completion_tokens for cells in seeds for sample in cells[task, length])


if __name__ == "__main__":
    main(sys.argv[1:])
