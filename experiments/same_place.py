"""The bias towards digits of the place that is written next: how far does it reach, and is it the bias that helps?

    python experiments/same_place.py [seeds=0,1,2] [problems=48] [output=checkpoints] [publish=true]

Evaluates runs of `experiments/finetune_swaps.py` (tuned on 1-3 digits) on 3 to 12 digits, the same problems for all:
plain fine-tuning (FT), numbers from their lowest digit up (rev all), the same with the bias (same place), and the same
with the learned bias set to zero. Every evaluation is a run of `lab.evaluate`; finished ones are not run again.
Shows exact match and digit match, and the latter against FT (Student's interval over the seeds, paired); leaves a table
and a figure in results/ beside the runs, or in experiments/results/ with publish=true.
"""

# %%
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from shared import showing
from shared.arguments import own, whole_number, whole_numbers
from shared.publishing import take_results

from lab.drawing.tables import NOT_MEASURED, Entry, Table, percent
from lab.errors import exit_cleanly
from lab.evaluate import main as evaluate
from lab.numbers.statistics import Estimate, seeds_proportion, student_mean
from lab.runs import Run

ROOT = Path(__file__).parents[1]
results, arguments = exit_cleanly(take_results)(sys.argv[1:], ROOT / "experiments" / "results")
given = exit_cleanly(own)(arguments, "seeds", "problems", "output")
SEEDS = whole_numbers(given, "seeds", "0,1,2")
PROBLEMS, OUTPUT = whole_number(given, "problems", 48), Path(given.get("output", "checkpoints"))
TASKS = ["add_integer", "add_float", "add_scientific", "multiply_easy_fraction"]
RANGES = {"S": (3, 4), "M": (5, 8), "L": (9, 12)}
ROWS = {"FT": "FT", "rev all": "rev-all", "same place": "same-place", "same place, bias taken away": "same-place"}


# %% Adapters with their learned bias set to zero; all other weights stay as they were trained.
def without_bias(run: Path) -> Path:
    folder = OUTPUT / f"{run.name}_without_bias"
    if not folder.exists():
        shutil.copytree(run / "model", folder)
        file = folder / "adapter_model.safetensors"
        weights = {
            name: torch.zeros_like(weight) if "same_place" in name else weight
            for name, weight in load_file(file).items()
        }
        save_file(weights, file)
    return folder


# %% Every row and seed on the same problems.
def measured(row: str, seed: int) -> dict[str, Any]:
    tuned = OUTPUT / f"finetune_swaps_{ROWS[row]}_{seed}"
    subject = without_bias(tuned) if "taken away" in row else tuned
    run = Run(OUTPUT / f"lengths_{subject.name}")
    if not (run.path / "summary.json").is_file():
        benchmark = {"tasks": TASKS, "lengths": {"hard": [3, 12], "easy": [3, 12]}, "problems_per_range": PROBLEMS}
        asked = [f"benchmark.{key}={json.dumps(value)}" for key, value in benchmark.items()]
        names = [f"name={run.path.name}", f"output={OUTPUT}", f"engine.model.name={subject}", "resume=true"]
        evaluate([str(ROOT / "configs" / "nupa_smollm2.yaml"), *asked, *names])
    return run.read_json("summary")


found = {row: [measured(row, seed) for seed in SEEDS] for row in ROWS}


# %% One table, one figure: by task, range and row, means over the seeds.
def figure_of(summary: dict[str, Any], task: str, span: str, name: str) -> dict[str, float]:
    return summary["nupa"][task]["ranges"][span]["strict"][name]


rows: list[tuple[Entry, ...]] = []
shown: dict[str, dict[str, dict[float, Estimate]]] = {task: {row: {} for row in ROWS} for task in TASKS}
for task in TASKS:
    for span, (first, last) in RANGES.items():
        plain = [figure_of(summary, task, span, "digit_match")["value"] for summary in found["FT"]]
        for row, summaries in found.items():
            right = [figure_of(summary, task, span, "exact_match") for summary in summaries]
            matched = [figure_of(summary, task, span, "digit_match")["value"] for summary in summaries]
            exact = seeds_proportion([one["value"] for one in right], int(right[0]["n"]))
            mean = student_mean(matched, 0, 1)
            gained = [mine - its for mine, its in zip(matched, plain, strict=True)]
            gain = showing.difference(gained) if row != "FT" else NOT_MEASURED
            rows.append((task, f"{first}-{last}", row, percent(exact), percent(mean), gain))
            shown[task][row][last] = mean
columns = ("task", "digits", "row", "exact match", "digit match", "digit match against FT")
title = (
    f"SmolLM2-135M tuned on 1-3 digits, {len(SEEDS)} seeds, {PROBLEMS} problems a task and range "
    "(%, 95 %; differences in points)"
)
results.show(Table(title, columns, rows, 3), "same_place")
title = "Digits right after 72 steps on numbers of 1-3 digits"
showing.panels(shown, "digits, at most", title, results.file("same_place.png"))
