"""The bias towards digits of the place that is written next: how far does it reach, and is it the bias that helps?

    python experiments/same_place.py [seeds=0,1,2] [problems=48] [output=checkpoints] [publish=true]

Evaluates runs of `experiments/finetune_swaps.py` (tuned on 1-3 digits) on 3 to 12 digits, the same problems for all:
plain fine-tuning (FT), numbers written from their lowest digit up (rev all), the same with the bias (same place), and
the same with the learned bias set to zero. Every evaluation is a run of `lab.evaluate`; finished ones are not run
again. Shows exact match and digit match, and the difference in digit match from FT (Student's interval over the seeds,
paired); leaves a table and a figure in results/ beside the runs, or in experiments/results/ with publish=true.
"""

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from shared import nupa_runs, showing
from shared.arguments import own, whole_number, whole_numbers
from shared.publishing import take_results

from lab.benchmarks.results import NupaSummary
from lab.drawing.tables import NOT_MEASURED, Entry, Table, percent
from lab.errors import RunError, exit_cleanly
from lab.numbers.statistics import Estimate, seeds_proportion, student_mean
from lab.runs import put_in_place

TASKS = ["add_integer", "add_float", "add_scientific", "multiply_easy_fraction"]
RANGES = {"S": (3, 4), "M": (5, 8), "L": (9, 12)}
ROWS = {"FT": "FT", "rev all": "rev-all", "same place": "same-place", "same place, bias taken away": "same-place"}

IN_WORDS = {
    "FT": "plain fine-tuning",
    "rev all": "everything reversed",
    "same place": "everything reversed, bias of places",
    "same place, bias taken away": "the same, learned bias set to zero",
}
"""The rows, as the figure names them."""


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    results, rest = take_results(arguments, Path(__file__).parent / "results")
    given = own(rest, "seeds", "problems", "output")
    seeds, problems = whole_numbers(given, "seeds", "0,1,2"), whole_number(given, "problems", 48)
    output = Path(given.get("output", "checkpoints"))
    found = {row: [measured(row, seed, problems, output) for seed in seeds] for row in ROWS}
    rows: list[tuple[Entry, ...]] = []
    shown: dict[str, dict[str, dict[float, Estimate]]] = {
        task: {word: {} for word in IN_WORDS.values()} for task in TASKS
    }
    for task in TASKS:
        for span, (first, last) in RANGES.items():
            plain = [score(summary, task, span, "digit_match").value for summary in found["FT"]]
            for row, summaries in found.items():
                right = [score(summary, task, span, "exact_match") for summary in summaries]
                matched = [score(summary, task, span, "digit_match").value for summary in summaries]
                exact = seeds_proportion([one.value for one in right], right[0].n)
                mean = student_mean(matched, 0, 1)
                gained = [mine - its for mine, its in zip(matched, plain, strict=True)]
                gain = showing.difference(gained) if row != "FT" else NOT_MEASURED
                rows.append((task, f"{first}-{last}", row, percent(exact), percent(mean), gain))
                shown[task][IN_WORDS[row]][last] = mean
    columns = ("task", "digits", "row", "exact match", "digit match", "digit match against FT")
    title = (
        f"SmolLM2-135M tuned on 1-3 digits, {len(seeds)} seeds, {problems} problems a task and range "
        "(%, 95 %; differences in points)"
    )
    results.show(Table(title, columns, rows, 3), "same_place")
    title = "Digits right after 72 steps on numbers of 1-3 digits"
    showing.panels(shown, "digits, at most", "digit match", title, results.file("same_place.png"))


def measured(row: str, seed: int, problems: int, output: Path) -> NupaSummary:
    """The answers of a row's model of one seed; the problems are the same for all."""
    tuned = output / f"finetune_swaps_{ROWS[row]}_{seed}"
    if not (tuned / "model").is_dir():
        raise RunError(f"{tuned}: no such model: run python experiments/finetune_swaps.py")
    subject = without_bias(tuned) if "taken away" in row else tuned
    lengths = {"hard": [3, 12], "easy": [3, 12]}
    changes = [f"benchmark.tasks={json.dumps(TASKS)}", f"benchmark.lengths={json.dumps(lengths)}"]
    return nupa_runs.nupa(nupa_runs.asked(f"lengths_{subject.name}", str(subject), str(problems), output, changes))


def without_bias(run: Path) -> Path:
    """The adapters of a run with their learned bias set to zero; all other weights stay as they were trained."""
    folder = run.with_name(f"{run.name}_without_bias")
    if not folder.exists():
        with put_in_place(folder) as staged:
            shutil.copytree(run / "model", staged, dirs_exist_ok=True)
            file = staged / "adapter_model.safetensors"
            weights = {
                name: torch.zeros_like(weight) if "same_place" in name else weight
                for name, weight in load_file(file).items()
            }
            save_file(weights, file)
    return folder


def score(summary: NupaSummary, task: str, span: str, name: str) -> Estimate:
    found = summary[task].ranges[span].metric("strict", name)
    assert found is not None
    return found


if __name__ == "__main__":
    main(sys.argv[1:])
