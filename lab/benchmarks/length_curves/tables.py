"""Tables of accuracy against length, and against the samples seen, for runs of `lab.pretrain` and means over seeds."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile

from lab.benchmarks.results import CurvePoint, Curves, Scores, read_summary
from lab.drawing.tables import NOT_MEASURED, Entry, Shown, Table, number, percent
from lab.errors import RunError
from lab.numbers.metrics import BOUNDS, METRICS
from lab.numbers.statistics import Estimate, seeds_proportion, student_mean
from lab.runs import Run

METRIC_NAMES = {"exact_match": "exact match", "digit_match": "digit match", "dlength": "difference in length (digits)"}


def of_run(run: Run) -> Curves:
    """The curves of a run. Raises RunError if it is not a run of `lab.pretrain`, or has not finished."""
    found = read_summary(run).lengths
    if found is None:
        raise RunError(f"{run.path}: not a run of lab.pretrain")
    return found


def together(runs: Iterable[Curves]) -> Curves:
    """The curves of runs on different tasks, merged into one."""
    return {task: lengths for run in runs for task, lengths in run.items()}


def across_seeds(runs: Sequence[Curves]) -> Curves:
    """The mean over runs, with Student's interval over them. A single run keeps its own interval, over its problems.

    For exact match and digit match, the interval also covers Wilson's interval over the problems of all runs, because
    the mean is not certain just because seeds agree. Each run has its own problems, drawn by its seed.
    """
    if len(runs) == 1:
        return runs[0]
    return {
        task: {
            length: Scores(**{m: _mean([run[task][length].metric(m) for run in runs], m) for m in METRICS})
            for length in lengths
        }
        for task, lengths in runs[0].items()
    }


def _mean(estimates: Sequence[Estimate], metric: str) -> Estimate:
    values = [estimate.value for estimate in estimates]
    if metric in ("exact_match", "digit_match"):
        return seeds_proportion(values, min(estimate.n for estimate in estimates), same_problems=False)
    return student_mean(values, *BOUNDS[metric])


def while_training(run: Run) -> dict[str, dict[int, dict[int, Scores]]]:
    """The points of curve.jsonl as {task: {length: {samples seen: scores}}}; empty if nothing was measured."""
    curves: dict[str, dict[int, dict[int, Scores]]] = {}
    for point in map(CurvePoint.model_validate, run.read("curve")):
        curves.setdefault(point.task, {}).setdefault(point.length, {})[point.samples] = point
    return curves


def table(curves: Mapping[str, Curves], title: str, metrics: Sequence[str] = METRICS) -> Table:
    """One row per task and length, with each of the metrics of each model."""
    rows: list[tuple[Entry, ...]] = []
    first = next(iter(curves.values()))
    for task in first:
        for length in first[task]:
            found = [curve.get(task, {}).get(length) for curve in curves.values()]
            cells = [_cell(scores, metric) for scores in found for metric in metrics]
            rows.append((task, str(length), *cells))
    single = len(curves) == 1
    names = [f"{METRIC_NAMES[m]}" if single else f"{label}: {METRIC_NAMES[m]}" for label in curves for m in metrics]
    return Table(title, ("task", "digits", *names), rows, 2)


def all_tables(curves: Mapping[str, Curves]) -> dict[str, Table]:
    """A table for each metric, by file name."""
    return {metric: by_metric(curves, f"By length: {name}", metric) for metric, name in METRIC_NAMES.items()}


def by_metric(curves: Mapping[str, Curves], title: str, metric: str) -> Table:
    """One row per task and model, one column per length: the layout of the paper's Tables 16 and 17.

    Args:
        curves: the curves of each model, by label.
        title: the title of the table.
        metric: exact_match, digit_match or dlength.
    """
    shown = sorted({length for curve in curves.values() for found in curve.values() for length in found})
    rows = [
        (task, label, *(_cell(curve[task].get(length), metric) for length in shown))
        for task in dict.fromkeys(task for curve in curves.values() for task in curve)
        for label, curve in curves.items()
        if task in curve
    ]
    return Table(title, ("task", "model", *(f"d{length}" for length in shown)), rows, 2)


GOOD = 0.9
"""A length counts as learned if at least this share of its answers is right."""


def in_short(curves: Curves) -> list[str]:
    """A line for each task: the length up to which at least nine of ten answers are right, and exact match at the
    longest length that was asked."""
    lines = []
    for task, lengths in curves.items():
        right = [(length, scores.exact_match) for length, scores in sorted(lengths.items())]
        if not right:
            lines.append(f"{task}: no question was answered")
            continue
        good = list(takewhile(lambda found: found[1].value >= GOOD, right))
        reach = f"at least {100 * GOOD:.0f} % right up to {good[-1][0]} digits" if good else f"below {100 * GOOD:.0f} %"
        longest, last = right[-1]
        lines.append(f"{task}: {reach}; at {longest} digits {percent(last)} %, n={last.n}")
    return lines


def _cell(scores: Scores | None, metric: str) -> Entry:
    if scores is None:
        return NOT_MEASURED
    match metric:
        case "dlength":
            return number(scores.dlength)
        case "digit_match":
            return Shown(scores.digit_match, "{:.1f} ({:.1f}-{:.1f})", 100)
        case _:
            return percent(scores.exact_match)
