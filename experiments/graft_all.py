"""One pretrained model tuned on all 53 tasks of NUPA, with the graft and without: which tasks does it help, and where?

    python experiments/graft_all.py [seed=0] [problems=20] [rows=graft,plain] [output=checkpoints] [publish=true]
                                    [key=value ...]

Tunes SmolLM2-135M by configs/smollm2_graft_all.yaml, on 16,000 problems of the ranges S and M, and tunes it again
without the graft (plain: positions as they were, numbers as people write them), on the same problems. Then it asks both
tuned models the same test problems of all four ranges, `problems` for each task and range. For the grafted model, the
total weight of far digits is bounded (engine.parts.coupled.far_at_most), by the weight of twice as many digits as the
longest training problems have: 16 for the tasks that NUPA calls hard, 40 for the others. The row `unbounded` tests it
without this bound. Other arguments go to `lab.finetune`. Runs that were killed are resumed, and finished ones are not
repeated.

Shows exact match by range and by kind of task, plain against grafted. Leaves tables and a heat map of every task and
range.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from shared.arguments import own_and_others, some_of, whole_number
from shared.nupa_runs import ARITHMETIC, KINDS, asked, by_range, heat_map, kind_of, nupa, samples
from shared.publishing import Results, take_results
from shared.training import trained

from lab.benchmarks.nupa import tables
from lab.benchmarks.nupa.summary import RANGES
from lab.benchmarks.nupa.tables import Change
from lab.benchmarks.results import Sample
from lab.config.finetuning import FinetuneConfig
from lab.config.loading import load
from lab.drawing.tables import Table, percent
from lab.errors import exit_cleanly
from lab.numbers.tasks import EASY, HARD, TASKS, Difficulty
from lab.progress import quiet_libraries
from lab.runs import Run

ROOT = Path(__file__).parents[1]
CONFIG = ROOT / "configs" / "smollm2_graft_all.yaml"
PLAIN = ["parts.coupled=null", "format={reverse: none, pad: none}"]
TITLE = "SmolLM2-135M tuned on 16,000 problems of 53 tasks, ranges S and M"
BOUNDS = ((16, HARD), (40, EASY))
"""All far digits together weigh at most as much as this many: twice the longest training lengths, 8 and 20 digits."""
ROWS = ("graft", "plain", "unbounded")
NAMES = ("seed", "problems", "rows", "output")


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    quiet_libraries()
    results, arguments = take_results(arguments, ROOT / "experiments" / "results")
    given, changes = own_and_others(arguments, *NAMES)
    seed, problems = whole_number(given, "seed", 0), str(whole_number(given, "problems", 20))
    output = Path(given.get("output", "checkpoints"))
    runs: dict[str, list[Run]] = {}
    for row in some_of(ROWS, given.get("rows", "graft,plain"), "rows", ","):
        model = trained(configured(row, seed, output, changes))
        name = f"{model.name}_asked"
        bounds = BOUNDS if row == "graft" else ()
        runs[row] = [
            asked(
                f"{name}_{bound}",
                str(model),
                problems,
                output,
                [f"engine.parts.coupled.far_at_most={bound}", tasks_of(difficulty)],
            )
            for bound, difficulty in bounds
        ] or [asked(name, str(model), problems, output)]
    show(runs, results)


def tasks_of(difficulty: Difficulty) -> str:
    """The argument that chooses the tasks of a difficulty."""
    return f"benchmark.tasks=[{', '.join(key for key, task in TASKS.items() if task.difficulty is difficulty)}]"


def of(difficulty: Difficulty, answers: Sequence[Sample]) -> list[Sample]:
    return [sample for sample in answers if TASKS[sample.task].difficulty is difficulty]


def configured(row: str, seed: int, output: Path, changes: Sequence[str]) -> FinetuneConfig:
    name, own = (f"graft_all_plain_{seed}", PLAIN) if row == "plain" else (f"graft_all_{seed}", [])
    changes = [*own, *changes, f"name={name}", f"seed={seed}", f"output={output}", "resume=true"]
    return load(FinetuneConfig, CONFIG, changes)


def by_kind(rows: Sequence[Change], title: str, labels: Sequence[str]) -> Table:
    """Exact match of two runs on the same problems, by kind of task and range."""
    lines = []
    for group in (*KINDS, ARITHMETIC):
        found = [row for row in rows if kind_of(TASKS[f"{row.task}_{row.representation}"]) == group]
        totals = [tables.total([row for row in found if row.range == name]) for name in RANGES]
        count = len({(row.task, row.representation) for row in found})
        for place, label in enumerate(labels):
            shares = [percent(one.second if place else one.first) for one in totals]
            lines.append((f"{group} ({count})", label, *shares))
    return Table(f"{title}: exact match (%, 95 %), by kind of task", ("tasks", "model", *RANGES), lines, 2)


def show(runs: dict[str, list[Run]], results: Results) -> None:
    """The plain model against the grafted one with each bound, on the same problems."""
    summaries = {name: nupa(*parts) for name, parts in runs.items()}
    for name in [name for name in runs if name != "plain" and "plain" in runs]:
        plain, grafted = samples(*runs["plain"]), samples(*runs[name])
        for label, difficulty in (("hard", HARD), ("easy", EASY)):
            rows = tables.changes(of(difficulty, plain), of(difficulty, grafted))
            title = f"{TITLE}: {label} tasks"
            results.show(by_range(rows, title, ("plain", name)), f"graft_all_{name}_{label}")
        rows = tables.changes(plain, grafted)
        results.show(by_kind(rows, TITLE, ("plain", name)), f"graft_all_{name}_kinds")
        results.show(tables.change_table(rows, f"{TITLE}: plain against {name}"), f"graft_all_{name}_changes")
    heat_map(summaries, TITLE, results.file("graft_all.png"))


if __name__ == "__main__":
    main(sys.argv[1:])
