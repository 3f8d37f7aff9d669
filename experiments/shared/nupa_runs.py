"""Starts runs of `lab evaluate` on NUPA, reads them, and shows them beside each other."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from shared.heat_map import heat_map as draw_shares

from lab.benchmarks.nupa import tables
from lab.benchmarks.nupa.summary import RANGES
from lab.benchmarks.nupa.tables import Change
from lab.benchmarks.results import NupaSummary, Sample, read_samples, read_summary
from lab.config.evaluation import EvaluateConfig
from lab.config.loading import load
from lab.drawing import figures
from lab.drawing.tables import Table, percent, points
from lab.errors import RunError
from lab.evaluate import main as evaluate
from lab.numbers.statistics import Estimate, seeds_proportion
from lab.numbers.tasks import TASKS, Task
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


def asked_in_parts(
    name: str, model: str, problems: str, output: Path, parts: int, changes: Sequence[str] = ()
) -> list[Run]:
    """Like `asked`, with the tasks divided among several runs, one after the other; other processes may have run some
    of these before. Raises RunError if the tasks were divided in another way before."""
    if parts == 1:
        return [asked(name, model, problems, output, changes)]
    divided = (f"benchmark.tasks=[{', '.join(list(TASKS)[part::parts])}]" for part in range(parts))
    runs = [asked(f"{name}_{part}", model, problems, output, [tasks, *changes]) for part, tasks in enumerate(divided)]
    if sorted(task for run in runs for task in nupa(run)) != sorted(TASKS):
        raise RunError(f"{output / name}_*: the tasks were divided otherwise before")
    return runs


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


def by_kind(rows: Sequence[Change], title: str, labels: Sequence[str] = ("before", "after")) -> Table:
    """Exact match of two runs on the same problems, by kind of task and range."""
    lines = []
    for group in (*KINDS, ARITHMETIC):
        found = [row for row in rows if kind(row) == group]
        totals = [tables.total([row for row in found if row.range == name]) for name in RANGES]
        count = len({(row.task, row.representation) for row in found})
        for place, label in enumerate(labels):
            shares = [percent(one.second if place else one.first) for one in totals]
            lines.append((f"{group} ({count})", label, *shares))
    return Table(f"{title}: exact match (%, 95 %), by kind of task", ("tasks", "model", *RANGES), lines, 2)


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


def kind(row: Change) -> str:
    return kind_of(TASKS[f"{row.task}_{row.representation}"])


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
