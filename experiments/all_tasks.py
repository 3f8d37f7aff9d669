"""The paper's fine-tuning with as many problems, on a small pretrained model: which of the 53 tasks does it learn?

    python -m experiments.all_tasks [config=configs/smollm2_lora_full.yaml] [seeds=0] [problems=50] [parts=1]
                                    [output=checkpoints] [table=all_tasks] [key=value ...]

Tunes SmolLM2-135M by the config: 51,200 problems of all tasks, in the ranges S and M, once for each seed. Then it asks
the untouched and the tuned models the same test problems of all four ranges, `problems` for each task and range. Other
arguments go to `lab.finetune`. Each part is a run directory of its own; with parts=5, each model is asked in five runs
of different tasks. Runs and results are named after `table`: give another one with other settings. If the script is
killed, start it again: it goes on, and does not repeat finished parts.

Shows exact match by kind of task and range before and after, over all seeds. For the first seed, it also shows how many
of the tasks improved beyond chance (McNemar's exact test, adjusted for all tasks and ranges by Holm's method). It shows
the well-learned digits of each seed beside those of the paper's tuned Llama-3.1-8B (Table 8). Leaves tables and a heat
map of every task and range.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.shared.arguments import own_and_others, whole_number
from experiments.shared.nupa_runs import ARITHMETIC, KINDS, asked, by_range, estimate, heat_map, kind_of, nupa, samples
from experiments.shared.publishing import beside_runs
from experiments.shared.training import trained
from lab.benchmarks.nupa import tables
from lab.benchmarks.nupa.published import PUBLISHED, Published
from lab.benchmarks.nupa.summary import RANGES
from lab.benchmarks.results import NupaSummary
from lab.config.finetuning import FinetuneConfig
from lab.config.loading import load
from lab.drawing.tables import Entry, Table, percent
from lab.errors import RunError, exit_cleanly
from lab.numbers.statistics import Estimate, seeds_proportion
from lab.numbers.tasks import TASKS
from lab.progress import quiet_libraries
from lab.runs import Run

ROOT = Path(__file__).parents[1]
CONFIG = ROOT / "configs" / "smollm2_lora_full.yaml"
THEIRS = "Llama-3.1-8B-ft"
NAMES = ("config", "seeds", "problems", "parts", "output", "table")


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    quiet_libraries()
    results = beside_runs(arguments)
    given, changes = own_and_others(arguments, *NAMES)
    problems, parts = str(whole_number(given, "problems", 50)), whole_number(given, "parts", 1)
    output, table = Path(given.get("output", "checkpoints")), given.get("table", "all_tasks")
    configs = {
        seed: tuning(Path(given.get("config", CONFIG)), f"{table}_{seed}", seed, output, changes)
        for seed in given.get("seeds", "0").split(",")
    }
    after = {}
    for seed, config in configs.items():
        after[seed] = asked_in_parts(f"{table}_tuned_{seed}", str(trained(config)), problems, output, parts)
    untouched = next(iter(configs.values())).model.name
    before = asked_in_parts(f"{table}_untouched", untouched, problems, output, parts)
    first = next(iter(after.values()))
    rows = tables.changes(samples(*before), samples(*first))
    tuned = {f"seed {seed}": nupa(*runs) for seed, runs in after.items()}
    method = next(iter(configs.values())).training
    count = method.max_steps * method.batch_size
    title = f"SmolLM2-135M tuned on {count:,} problems of {len(TASKS)} tasks, ranges S and M"
    of_first = f"{title}, {next(iter(tuned))}"
    results.show(by_seed(nupa(*before), list(tuned.values()), title), f"{table}_kinds")
    results.show(by_range(rows, of_first), table)
    theirs = [row for row in PUBLISHED if row.model == THEIRS]
    results.show(tables.digits(tuned, "digit_match", theirs), f"{table}_digits")
    results.show(beside_table_18(list(tuned.values()), theirs), f"{table}_table18")
    results.show(tables.change_table(rows, of_first), f"{table}_changes")
    heat_map({"before": nupa(*before), "after": nupa(*first)}, of_first, results.file(f"{table}.png"))


def tuning(config: Path, name: str, seed: str, output: Path, changes: Sequence[str]) -> FinetuneConfig:
    """The training, with one problem for each task and range in its own tests, because both models are tested later."""
    own = [
        f"name={name}",
        f"seed={seed}",
        f"output={output}",
        "resume=true",
        "evaluation.problems_per_range=1",
        "training.keep_steps=true",
    ]
    return load(FinetuneConfig, config, [*changes, *own])


def asked_in_parts(name: str, model: str, problems: str, output: Path, parts: int) -> list[Run]:
    """Like `asked`, with the tasks divided among several runs, one after the other; other processes may have run some
    of these before. Raises RunError if the tasks were divided in another way before."""
    if parts == 1:
        return [asked(name, model, problems, output)]
    divided = (f"benchmark.tasks=[{', '.join(list(TASKS)[part::parts])}]" for part in range(parts))
    runs = [asked(f"{name}_{part}", model, problems, output, [tasks]) for part, tasks in enumerate(divided)]
    if sorted(task for run in runs for task in nupa(run)) != sorted(TASKS):
        raise RunError(f"{output / name}_*: the tasks were divided otherwise before")
    return runs


def by_seed(before: NupaSummary, seeds: Sequence[NupaSummary], title: str) -> Table:
    """Exact match of a model before training and of several trainings after it, by kind of task and range. Intervals
    combine Student's over the seeds with Wilson's over the problems, which are the same for all seeds."""
    groups = {name: [key for key in before if kind_of(TASKS[key]) == name] for name in (*KINDS, ARITHMETIC)}
    lines = []
    for name, keys in {**groups, "all": list(before)}.items():
        for label, models in (("before", [before]), ("after", seeds)):
            found = [over_seeds(models, keys, [part]) for part in RANGES]
            found.append(over_seeds(models, keys, RANGES))
            lines.append((f"{name} ({len(keys)})", label, *map(percent, found)))
    columns = ("tasks", "model", *RANGES, "all")
    return Table(f"{title}: exact match (%, 95 %), seeds: {len(seeds)}", columns, lines, 2)


def over_seeds(models: Sequence[NupaSummary], tasks: Sequence[str], names: Sequence[str]) -> Estimate:
    """The share of right answers to the problems of some tasks in some ranges, averaged over models."""
    cells = [(task, name) for task in tasks for name in names]
    estimates = [[found for cell in cells if (found := estimate(model, *cell))] for model in models]
    shares = [sum(one.value * one.n for one in found) / sum(one.n for one in found) for found in estimates]
    return seeds_proportion(shares, sum(one.n for one in estimates[0]))


def beside_table_18(seeds: Sequence[NupaSummary], theirs: Sequence[Published]) -> Table:
    """Exact match of the tasks for which the paper gives it: ours with intervals, and the paper's."""
    lines: list[tuple[Entry, ...]] = []
    for row in theirs:
        if row.metric == "exact_match" and row.task in seeds[0]:
            ours = [
                percent(over_seeds(seeds, [row.task], [name])) for name in RANGES if name in seeds[0][row.task].ranges
            ]
            lines.append((row.task, "SmolLM2-135M", *ours))
            lines.append((row.task, f"{THEIRS} (paper, {row.source})", *(f"{100 * row.ranges[r]:.0f}" for r in RANGES)))
    return Table("Exact match (%, 95 %) beside the paper's", ("task", "model", *RANGES), lines, 2)


if __name__ == "__main__":
    main(sys.argv[1:])
