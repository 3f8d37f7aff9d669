"""The results of a sweep: one table and one figure for many runs; each value is a mean over the seeds of a cell."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from lab.benchmarks.length_curves import tables as length_curves
from lab.benchmarks.length_curves.figures import length_curves as draw_length_curves
from lab.benchmarks.results import Curves
from lab.drawing.figures import by_cell
from lab.drawing.tables import NOT_MEASURED, Entry, Shown, Table, percent
from lab.numbers.metrics import BOUNDS
from lab.numbers.statistics import Estimate, seeds_proportion, student_mean, wilson
from lab.runs import Run
from lab.sweeping.config import LengthCurvesResults, ValuesResults
from lab.sweeping.paths import found, is_estimate


class Row(NamedTuple):
    """The finished runs of a cell."""

    labels: Mapping[str, str]
    """The value that this cell has for each key that the sweep varies, as in `SweepCell`."""
    runs: Sequence[Run]
    """One run for each seed."""


def write(results: LengthCurvesResults | ValuesResults, rows: Sequence[Row], title: str, run: Run) -> Table | None:
    """Writes table.md, results.csv and figures/results.png into the sweep's directory.

    Args:
        results: what to show.
        rows: the finished runs of each cell.
        title: the title of the table and the figure.
        run: the sweep's run directory.

    Returns the table, or None if no cell has a finished run yet. Raises `RunError` if a finished run has nothing at a
    path of the config.
    """
    seeds = {len(row.runs) for row in rows}
    if seeds == {0}:
        return None
    count = f"{min(seeds)} to {max(seeds)}" if len(seeds) > 1 else f"{max(seeds)}"
    title = f"{title} ({count} seed{'' if seeds == {1} else 's'})"
    figure = run.figures / "results.png"
    match results:
        case LengthCurvesResults():
            table = _length_curves([row for row in rows if row.runs], title, figure)
        case ValuesResults():
            table = _values(results, rows, title, figure)
    run.write_text("table.md", table.page())
    run.write_text("results.csv", table.csv())
    return table


def _length_curves(rows: Sequence[Row], title: str, figure: Path) -> Table:
    curves: dict[str, Curves] = {}
    for row in rows:
        label = ", ".join(text for key, text in row.labels.items() if key != "data.tasks") or "all"
        means = length_curves.across_seeds([length_curves.of_run(run) for run in row.runs])
        curves[label] = length_curves.together([curves.get(label, {}), means])
    trained = rows[0].runs[0].settings["data"]["lengths"]
    draw_length_curves(curves, tuple(trained), title, figure)
    return length_curves.by_metric(curves, title, "exact_match")


def _values(results: ValuesResults, rows: Sequence[Row], title: str, figure: Path) -> Table:
    kinds = [(name, path, True) for name, path in results.shares.items()]
    kinds += [(name, path, False) for name, path in results.means.items()]
    estimates = {name: [across_seeds(row.runs, path, share) for row in rows] for name, path, share in kinds}
    columns = tuple(rows[0].labels)
    shown: list[tuple[Entry, ...]] = []
    for place, row in enumerate(rows):
        cells = [_cell(estimates[name][place], share) for name, _, share in kinds]
        shown.append((*row.labels.values(), str(len(row.runs)), *cells))
    labels = [", ".join(row.labels.values()) for row in rows]
    shares = results.shares.keys()
    by_cell(labels, estimates, shares, ", ".join(columns), title, figure)
    return Table(title, (*columns, "seeds", *estimates), shown, len(columns))


def in_short(results: LengthCurvesResults | ValuesResults, table: Table) -> list[str]:
    """The cells with the highest and the lowest value, in a line for each of the first three columns of values; for
    curves by length, only for the longest length."""
    columns = [place for place in range(table.names, len(table.columns)) if table.columns[place] != "seeds"]
    lines = []
    for place in columns[-1:] if isinstance(results, LengthCurvesResults) else columns[:3]:
        cells = [(cell, _label(row[: table.names])) for row in table.rows if isinstance(cell := row[place], Shown)]
        if cells:
            cells.sort(key=lambda cell: -cell[0].estimate.value)
            (high, best), (low, worst) = cells[0], cells[-1]
            lowest = f", lowest {low} ({worst})" if len(cells) > 1 else ""
            lines.append(f"{table.columns[place]} (95 % interval): highest {high} ({best}){lowest}")
    return lines


def _label(names: Sequence[Entry]) -> str:
    return ", ".join(str(name) for name in names if str(name))


def across_seeds(runs: Sequence[Run], path: str, share: bool) -> Estimate | None:
    """The mean over runs with its 95 % interval; None if there are no runs.

    The interval of a share combines Student's over the runs with Wilson's over the problems of one run, because all
    runs may be asked the same problems (`seeds_proportion`). The interval of any other number is Student's, cut to the
    bounds of its metric. A single run keeps its own interval.

    Args:
        runs: the runs of one cell, one for each seed.
        path: the keys of the value (see `ValuesResults`).
        share: whether the value is a proportion of problems.
    """
    if not runs:
        return None
    means = [_pooled(run, path, share) for run in runs]
    if share:
        return seeds_proportion([mean.value for mean in means], min(mean.n for mean in means))
    if len(means) == 1:
        return means[0]
    bounds = BOUNDS.get(path.rpartition(".")[2], (-math.inf, math.inf))
    return student_mean([mean.value for mean in means], *bounds)


def _pooled(run: Run, path: str, share: bool) -> Estimate:
    """Everything that `path` matches in a run, as one estimate: shares are pooled over problems, other numbers
    averaged."""
    values = found(run, path, share)
    if share:
        right = sum(part["value"] * part["n"] for part in values)
        return wilson(round(right), sum(part["n"] for part in values))
    if len(values) == 1 and is_estimate(values[0]):
        return Estimate.from_json(values[0])
    numbers = [part["value"] if is_estimate(part) else float(part) for part in values]
    return student_mean([sum(numbers) / len(numbers)])


def _cell(estimate: Estimate | None, share: bool) -> Entry:
    if estimate is None:
        return NOT_MEASURED
    if share:
        return percent(estimate)
    return Shown(estimate, "{:.4g} ({:.4g}-{:.4g})", 1)
