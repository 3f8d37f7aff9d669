"""Table 18 of the Number Cookbook with our model, and other changes that leave the model's output as it is when
training begins.

    python -m experiments.swaps-at-scale.run [table=finetune_swaps] [key=value ...]

Runs the sweep configs/sweeps/finetune_swaps.yaml (finished runs are not run again); keys change the sweep, such as
seeds=[0] or only="[FT, NoPE]". Then shows for each row, task and range: exact match and digit match; the difference in
digit match from FT, plain fine-tuning (means over the seeds that both rows have; each seed has its own problems, the
same for both rows); and the paper's score. The paper's model reads three digits per token, and rows with "1d" tune it
on one; SmolLM2 reads one, and rows with "2d" tune it on two. A second table has all ranges together, and a figure shows
exact match by range; both with the paper's plainly tuned Llama-3.1-8B.

With config=../smollm2_swaps_gpu.yaml name=finetune_swaps_gpu, every row is tuned on half as many problems as in the
paper, with numbers of the same lengths.
"""

import csv
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import mean
from typing import Any, TypeAlias

from experiments.shared.arguments import own_and_others
from experiments.shared.publishing import beside_runs
from experiments.shared.showing import difference, looks
from lab.config.loading import load
from lab.drawing import figures
from lab.drawing.tables import NOT_MEASURED, Entry, Table, percent
from lab.errors import RunError, exit_cleanly
from lab.numbers.statistics import Estimate, seeds_proportion, student_mean
from lab.runs import Run
from lab.sweep import main as sweep
from lab.sweeping.config import SweepConfig

HERE = Path(__file__).parent
CONFIG = HERE.parents[1] / "configs" / "sweeps" / "finetune_swaps.yaml"
UNTUNED = "w/o FT"
Seeds: TypeAlias = Mapping[int, dict[str, Any]]
"""The scores of each seed by task."""
Rows: TypeAlias = Mapping[str, Seeds]
AS_PUBLISHED = {
    "FT": "FT",
    UNTUNED: UNTUNED,
    "NoPE": "NoPE",
    "NoPE rev": "NoPE + rev + 1d",
    "NoPE rev pad": "NoPE + rev + pad + 1d",
    "RoPE 2d": "RoPE + 1d",
    "RoPE rev 2d": "RoPE + rev + 1d",
}
"""For each of our rows, the paper's row that it is compared with. Our model reads one digit a token, so its names lack
"1d"."""


IN_WORDS = {
    "FT": "plain fine-tuning",
    "RoPE rev": "integer parts reversed",
    "rev all": "everything reversed",
    "same place": "everything reversed, bias of places",
    "NoPE rev": "NoPE, integer parts reversed",
    "NoPE rev pad": "NoPE, integer parts reversed, padded",
    "RoPE 2d": "tokens of two digits",
    "RoPE rev 2d": "tokens of two digits, integer parts reversed",
    "rev places": "integer parts reversed, places of digits",
    "curriculum": "growing lengths",
}
"""Our rows, as the figure names them."""


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    results = beside_runs(arguments)
    given, arguments = own_and_others(arguments, "table")
    config = load(SweepConfig, CONFIG, arguments)
    sweep([str(CONFIG), *arguments])
    tuned: dict[str, dict[int, dict[str, Any]]] = {}
    untuned: dict[int, dict[str, Any]] = {}
    for label in config.only or config.cells:
        for seed in config.seeds:
            if found := summary(config.output / f"{config.name}_{label.replace(' ', '-')}_{seed}"):
                tuned.setdefault(label, {})[seed] = found["after"]
                if label == "FT":
                    untuned[seed] = found["before"]
    if not tuned:
        raise RunError(f"{config.output}: no run of the sweep {config.name} is finished")
    rows = {**tuned, UNTUNED: untuned} if untuned else tuned
    name = given.get("table", "finetune_swaps")
    results.show(compare(rows), name)
    results.show(totals(rows), f"{name}_totals")
    draw(tuned, results.file(f"{name}.png"))


def summary(folder: Path) -> dict[str, Any] | None:
    run = Run(folder)
    return run.read_json("summary") if (folder / "summary.json").is_file() and run.status == "finished" else None


def compare(rows: Rows) -> Table:
    """A line for each task, range and row."""
    lines: list[tuple[Entry, ...]] = []
    for task, ranges in ranges_of(rows).items():
        for span in ranges:
            plain = {seed: digit_match(one, task, span) for seed, one in rows.get("FT", {}).items()}
            for label, found in rows.items():
                exact = exact_match(found, task, span)
                digits = {seed: digit_match(one, task, span) for seed, one in found.items()}
                gained = [mine - plain[seed] for seed, mine in digits.items() if seed in plain]
                lines.append(
                    (
                        task,
                        span,
                        label,
                        str(len(found)),
                        percent(exact),
                        percent(student_mean(list(digits.values()), 0, 1)),
                        difference(gained) if gained and label != "FT" else NOT_MEASURED,
                        published().get((AS_PUBLISHED.get(label, ""), task, span), NOT_MEASURED),
                    )
                )
    columns = ("task", "range", "row", "seeds", "exact match", "digit match", "digit match against FT", "paper's exact")
    return Table("SmolLM2-135M tuned on four tasks (%, 95 %; differences in points)", columns, lines, 4)


def totals(rows: Rows) -> Table:
    """Exact match of each row and task over all ranges together, and the paper's figures for plain fine-tuning."""
    tasks = ranges_of(rows)
    lines: list[tuple[Entry, ...]] = [
        (label, str(len(found)), *(percent(exact_match(found, task, *ranges)) for task, ranges in tasks.items()))
        for label, found in rows.items()
    ]
    theirs = [plainly_tuned(task, ranges) for task, ranges in tasks.items()]
    lines.append(("Llama-3.1-8B, FT (paper)", "", *(f"{mean(part):.0f}" if part else NOT_MEASURED for part in theirs)))
    return Table("Exact match over all ranges, each with the same weight (%, 95 %)", ("row", "seeds", *tasks), lines, 2)


def ranges_of(rows: Rows) -> dict[str, list[str]]:
    """The ranges of each task."""
    return {task: list(part["ranges"]) for task, part in next(iter(next(iter(rows.values())).values())).items()}


def exact_match(summaries: Seeds, task: str, *ranges: str) -> Estimate:
    """The mean over seeds and ranges, which have equally many problems. Each seed has problems of its own."""
    found = [[one[task]["ranges"][span]["strict"]["exact_match"] for span in ranges] for one in summaries.values()]
    shares = [mean(one["value"] for one in of_seed) for of_seed in found]
    return seeds_proportion(shares, sum(one["n"] for one in found[0]), same_problems=False)


def digit_match(summary: dict[str, Any], task: str, span: str) -> float:
    return summary[task]["ranges"][span]["strict"]["digit_match"]["value"]


def draw(rows: Rows, path: Path) -> None:
    """Exact match by range, a panel for each task."""
    tasks = ranges_of(rows)
    with figures.figure_at(path, (2.1 * len(tasks) + 0.6, 3.3)) as figure:
        panels = figure.subplots(1, len(tasks), sharey=True, squeeze=False)[0]
        for axes, (task, ranges) in zip(panels, tasks.items(), strict=True):
            for look, (label, found) in zip(looks(), rows.items(), strict=False):
                points = {place: exact_match(found, task, span) for place, span in enumerate(ranges)}
                figures.line_with_band(axes, points, label=IN_WORDS.get(label, label), **look)
            if theirs := plainly_tuned(task, ranges):
                axes.plot([one / 100 for one in theirs], "k--", lw=1, label="Llama-3.1-8B, plain fine-tuning (paper)")
            axes.set(title=task, ylim=(-0.03, 1.03), xlabel="range of digits")
            axes.set_xticks(range(len(ranges)), ranges)
        figure.axes[0].set_ylabel("exact match")
        figures.legend_below(figure, 3)


def plainly_tuned(task: str, ranges: Sequence[str]) -> list[float]:
    """The paper's exact match after plain fine-tuning, in percent, by range; nothing if it does not have all."""
    found = [published().get(("FT", task, span)) for span in ranges]
    return [float(one) for one in found if one] if all(found) else []


@cache
def published() -> dict[tuple[str, str, str], str]:
    with (HERE / "table18.csv").open() as file:
        return {
            (line["row"], line["task"], span): f"{100 * float(line[span]):.0f}"
            for line in csv.DictReader(file)
            for span in ("S", "M", "L", "XL")
        }


if __name__ == "__main__":
    main(sys.argv[1:])
