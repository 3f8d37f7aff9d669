"""The paper's fine-tuning at its size, on a small pretrained model: what does it learn of all 53 tasks?

    python experiments/all_tasks.py [seed=0] [problems=50] [output=checkpoints] [publish=true] [key=value ...]

Tunes SmolLM2-135M by configs/smollm2_lora_full.yaml: 800 steps of 64 problems of all tasks, in the ranges S and M. Then
it asks the untouched and the tuned model the same test problems of all four ranges, `problems` for each task and range.
Other arguments go to `lab.finetune`. Each part is a run directory of its own. If the script is killed, start it again:
it goes on, and does not repeat finished parts.

Shows exact match by range and by kind of task before and after, how many of the tasks gained beyond chance (McNemar's
exact test, adjusted for all tasks and ranges by Holm's method), and the digits that are well learned beside those of
the paper's tuned Llama-3.1-8B (Table 8). Leaves tables and a heat map of every task and range.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from shared.arguments import own_and_others
from shared.nupa_runs import asked, by_kind, by_range, heat_map, nupa, samples
from shared.publishing import take_results

from lab.benchmarks.nupa import tables
from lab.benchmarks.nupa.published import PUBLISHED, Published
from lab.benchmarks.nupa.summary import RANGES
from lab.benchmarks.results import NupaSummary
from lab.config.finetuning import FinetuneConfig
from lab.config.loading import load
from lab.drawing.tables import Entry, Table, percent
from lab.finetune import finetune
from lab.numbers.tasks import TASKS
from lab.progress import quiet_libraries

ROOT = Path(__file__).parents[1]
CONFIG = ROOT / "configs" / "smollm2_lora_full.yaml"
THEIRS = "Llama-3.1-8B-ft"
NAMES = ("seed", "problems", "output")


def main(arguments: Sequence[str]) -> None:
    quiet_libraries()
    results, arguments = take_results(arguments, ROOT / "experiments" / "results")
    given, changes = own_and_others(arguments, *NAMES)
    seed, problems = given.get("seed", "0"), given.get("problems", "50")
    output = Path(given.get("output", "checkpoints"))
    config = tuning(seed, output, changes)
    if config.run_status() != "finished":
        finetune(config)
    before = asked("all_tasks_untouched", config.model.name, problems, output)
    after = asked(f"all_tasks_tuned_{seed}", str(config.path), problems, output)
    rows = tables.changes(samples(before), samples(after))
    title = f"SmolLM2-135M tuned on 51,200 problems of {len(TASKS)} tasks, ranges S and M"
    results.show(by_range(rows, title), "all_tasks")
    results.show(by_kind(rows, title), "all_tasks_kinds")
    theirs = [row for row in PUBLISHED if row.model == THEIRS]
    results.show(tables.digits({"tuned": nupa(after)}, "digit_match", theirs), "all_tasks_digits")
    results.show(beside_table_18(nupa(after), theirs), "all_tasks_table18")
    results.show(tables.change_table(rows, title), "all_tasks_changes")
    heat_map({"before": nupa(before), "after": nupa(after)}, title, results.file("all_tasks.png"))


def tuning(seed: str, output: Path, changes: Sequence[str]) -> FinetuneConfig:
    """The job, with one problem for each task and range in its own tests, because both models are asked later."""
    name = f"all_tasks_{seed}"
    own = [
        f"name={name}",
        f"seed={seed}",
        f"output={output}",
        "resume=true",
        "evaluation.problems_per_range=1",
        "training.keep_steps=true",
    ]
    return load(FinetuneConfig, CONFIG, [*changes, *own])


def beside_table_18(tuned: NupaSummary, theirs: Sequence[Published]) -> Table:
    """Exact match of the tasks for which the paper gives it: ours with intervals, and the paper's."""
    lines: list[tuple[Entry, ...]] = []
    for row in theirs:
        if row.metric == "exact_match" and row.task in tuned:
            ranges = tuned[row.task].ranges
            ours = [percent(found.metric("strict", "exact_match")) for found in map(ranges.get, RANGES) if found]
            lines.append((row.task, "SmolLM2-135M", *ours))
            lines.append((row.task, f"{THEIRS} (paper, {row.source})", *(f"{100 * row.ranges[r]:.0f}" for r in RANGES)))
    return Table("Exact match (%, 95 %) beside the paper's", ("task", "model", *RANGES), lines, 2)


if __name__ == "__main__":
    main(sys.argv[1:])
