"""How much does a pretrained model gain from more problems, and can this gain be predicted?

    python -m experiments.samples-law.run [runs=checkpoints/all_tasks_0] [problems=48] [output=checkpoints]

Asks the models that experiments/all_tasks.py kept at each validation (`training.keep_steps`) the same test problems of
six tasks, in the ranges that they were trained on. `runs` may name several seeds, whose results are averaged. For each
task and range, a straight line is fitted to the first half of the models: the log odds of exact match against the
logarithm of the number of problems seen. It predicts the last model. Shows exact match by problems seen, the
prediction, and whether it lies in the 95 % interval of the measured value. Each model's answers are a run directory of
its own; finished ones are not asked again.
"""

import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from experiments.shared import nupa_runs, showing
from experiments.shared.arguments import own, whole_number
from experiments.shared.publishing import Results, beside_runs
from lab.config.finetuning import FinetuneConfig
from lab.config.loading import load
from lab.drawing.tables import Entry, Table, percent
from lab.errors import RunError, exit_cleanly
from lab.numbers.statistics import Estimate, seeds_proportion
from lab.progress import quiet_libraries

TASKS = (
    "add_integer",
    "multiply_easy_integer",
    "max_float",
    "digit_add_integer",
    "to_scient_integer",
    "get_digit_integer",
)
LENGTHS = {"hard": [1, 8], "easy": [1, 20]}
RANGES = ("S", "M")


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    quiet_libraries()
    results = beside_runs(arguments)
    given = own(arguments, "runs", "problems", "output")
    runs = [Path(run) for run in given.get("runs", "checkpoints/all_tasks_0").split(",")]
    problems, output = whole_number(given, "problems", 48), Path(given.get("output", "checkpoints"))
    shares: dict[str, dict[int, list[float]]] = {}
    for run in runs:
        batch = load(FinetuneConfig, run / "config.yaml", []).training.batch_size
        for folder in kept(run):
            for name, share in asked(folder, problems, output).items():
                shares.setdefault(name, {}).setdefault(batch * int(folder.name), []).append(share)
    curves = {
        name: {seen: seeds_proportion(found, problems) for seen, found in curve.items()}
        for name, curve in shares.items()
    }
    show(curves, problems * len(runs), results)


def kept(run: Path) -> list[Path]:
    """The folders of the models of each validation, in the order of training."""
    steps = sorted((run / "steps").glob("*"))
    if len(steps) < 4:
        raise RunError(
            f"{run}/steps: needs the models of four validations or more; training.keep_steps=true keeps them"
        )
    return steps


def asked(folder: Path, problems: int, output: Path) -> Mapping[str, float]:
    """Exact match of each task and range."""
    name = f"samples_law_{folder.parents[1].name}_{folder.name}"
    changes = [f"benchmark.tasks={json.dumps(TASKS)}", f"benchmark.lengths={json.dumps(LENGTHS)}"]
    summary = nupa_runs.nupa(nupa_runs.asked(name, str(folder), str(problems), output, changes))
    found = {}
    for task in TASKS:
        for part in RANGES:
            estimate = summary[task].ranges[part].metric("strict", "exact_match")
            assert estimate is not None
            found[f"{task} {part}"] = estimate.value
    return found


def predicted(curve: Mapping[int, Estimate], problems: int) -> float:
    """Exact match at the last number of problems, from the first half of the curve."""
    seen = sorted(curve)
    first = seen[: (len(seen) + 1) // 2]
    slope, start = np.polyfit(np.log(first), [log_odds(curve[count].value, problems) for count in first], 1)
    return 1 / (1 + math.exp(-(start + slope * math.log(seen[-1]))))


def log_odds(share: float, problems: int) -> float:
    """The log odds of a share. Half a problem is added to the right and to the wrong ones, so that the odds are finite
    (Haldane 1956)."""
    right = share * problems
    return math.log((right + 0.5) / (problems - right + 0.5))


def show(curves: Mapping[str, Mapping[int, Estimate]], problems: int, results: Results) -> None:
    lines: list[tuple[Entry, ...]] = []
    seen = sorted(next(iter(curves.values())))
    for name, curve in curves.items():
        guess, last = predicted(curve, problems), curve[seen[-1]]
        met = "yes" if last.low <= guess <= last.high else "no"
        lines.append((name, *(percent(curve[count]) for count in seen), f"{100 * guess:.0f}", met))
    columns = ("task, range", *(f"{count:,}" for count in seen), "predicted", "inside")
    results.show(Table("Exact match (%, 95 %) by problems seen", columns, lines, 1), "samples_law")
    panels = {
        part: {
            name.removesuffix(f" {part}"): {count / 1000: one for count, one in curve.items()}
            for name, curve in curves.items()
            if name.endswith(f" {part}")
        }
        for part in RANGES
    }
    what = "Exact match against problems seen, SmolLM2-135M tuned on all tasks"
    showing.panels(panels, "thousands of problems seen", "exact match", what, results.file("samples_law.png"))


if __name__ == "__main__":
    main(sys.argv[1:])
