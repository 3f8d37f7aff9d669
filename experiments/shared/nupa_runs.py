"""Starts runs of `lab evaluate` on NUPA, reads them, and shows them beside each other."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from experiments.shared.heat_map import heat_map as draw_shares
from lab.benchmarks.nupa import tables
from lab.benchmarks.nupa.summary import RANGES
from lab.benchmarks.nupa.tables import Change
from lab.benchmarks.results import NupaSummary, Sample, read_samples, read_summary
from lab.config.evaluation import EvaluateConfig
from lab.config.loading import load
from lab.drawing import figures
from lab.drawing.tables import Table, percent, points
from lab.evaluate import main as evaluate
from lab.numbers.statistics import Estimate
from lab.numbers.tasks import Task
from lab.runs import Run

ASKED = Path(__file__).parents[2] / "configs" / "nupa_smollm2.yaml"
TRAINED = ("S", "M")
"""The ranges of training."""
KINDS = {
    "digit by digit": ("digit_max", "digit_min", "digit_add"),
    "maxima and minima": ("max", "max_hard", "min", "min_hard"),
    "conversions, counting, looking up": ("get_digit", "length", "count", "to_float", "to_scient", "sig"),
}
ARITHMETIC = "arithmetic, fractions to floats"


def asked(name: str, model: str, problems: str, output: Path, changes: Sequence[str] = ()) -> Run:
    """A finished run of configs/nupa_smollm2.yaml. If it does not exist or is not finished, it is run now. Raises
    RunError if a run of this name has other settings.

    Args:
        name: the name of the run directory.
        model: the name of a model, or the folder of a tuned one.
        problems: how many problems to ask for each task and range.
        output: where run directories are.
        changes: further arguments of `lab evaluate`.
    """
    settings = [f"benchmark.problems_per_range={problems}", f"name={name}", f"output={output}"]
    settings += [f"engine.model.name={model}", "resume=true", *changes]
    config = load(EvaluateConfig, ASKED, settings)
    if config.run_status() != "finished":
        evaluate([str(ASKED), *settings])
    return Run(config.path)


def samples(*runs: Run) -> list[Sample]:
    """The answers of runs of different tasks, in an order that depends on the problems alone, so that two lists of the
    same problems can be compared."""
    return sorted((sample for run in runs for sample in read_samples(run)), key=lambda sample: str(sample.problem))


def nupa(*runs: Run) -> NupaSummary:
    """The scores of runs of different tasks, by task and range."""
    found: NupaSummary = {}
    for run in runs:
        summary = read_summary(run).nupa
        assert summary is not None
        found |= summary
    return found


def by_range(rows: Sequence[Change], title: str, labels: Sequence[str] = ("before", "after")) -> Table:
    """Exact match of two runs on the same problems, by range.

    Also counts the tasks at which the second run is better, or worse, beyond chance (McNemar's exact test, adjusted for
    all tasks and ranges by Holm's method), and the tasks at which it gets nine of ten problems right. The row "all"
    counts each task once in every range.
    """
    lines = []
    for name in (*RANGES, "all"):
        part = [row for row in rows if name in (row.range, "all")]
        found = tables.total(part)
        better = [row for row in part if row.gained]
        worse = sum(row.p < 0.05 for row in part) - len(better)
        good = sum(row.difference.second.value >= 0.9 for row in part)
        what = f"{name}, trained" if name in TRAINED else name
        numbers = (percent(found.first), percent(found.second), points(found.estimate))
        counts = (f"{len(better)} of {len(part)}", str(worse), str(good))
        lines.append((what, str(found.n), *numbers, *counts))
    columns = (
        "range",
        "n",
        f"{labels[0]}, %",
        f"{labels[1]}, %",
        "points",
        "tasks better",
        "tasks worse",
        "tasks at 90 %",
    )
    return Table(f"{title}: exact match (95 %), strict reading", columns, lines, 1)


def kind_of(task: Task) -> str:
    """The kind of a task. Writing a fraction as a float is a division, so it belongs to arithmetic."""
    if task.key == "to_float_fraction":
        return ARITHMETIC
    return next((kind for kind, names in KINDS.items() if task.name in names), ARITHMETIC)


def heat_map(models: Mapping[str, NupaSummary], title: str, path: Path) -> None:
    """Exact match: a row for each task, a column for each model and range."""
    shown = tables.tasks(*models.values())
    with figures.figure_at(path, (6.2, 11)) as figure:
        panels = figure.subplots(1, len(models), sharey=True, squeeze=False)[0]
        for axes, (label, summary) in zip(panels, models.items(), strict=True):
            values = [[share(summary, task.key, name) for name in RANGES] for task in shown]
            draw_shares(axes, values, [task.key for task in shown], RANGES, size=6)
            axes.axvline(len(TRAINED) - 0.5, color="black")
            axes.set_title(label)
        figure.colorbar(panels[0].images[0], ax=list(panels), label="exact match (%)", shrink=0.4)
        figures.headed(figure, f"{title} (trained left of the line)")


def share(summary: NupaSummary, task: str, name: str) -> float:
    found = estimate(summary, task, name)
    return found.value if found else float("nan")


def estimate(summary: NupaSummary, task: str, name: str) -> Estimate | None:
    """Exact match of a task in a range; None if it was not asked."""
    found = summary[task].ranges.get(name) if task in summary else None
    return found.metric("strict", "exact_match") if found else None
