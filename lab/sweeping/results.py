"""The results of a sweep: one table and one figure for many runs; each value is a mean over the seeds of a cell."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lab.benchmarks.length_curves import tables as length_curves
from lab.benchmarks.length_curves.figures import length_curves as draw_length_curves
from lab.benchmarks.results import Curves
from lab.drawing.figures import by_cell
from lab.drawing.tables import NOT_MEASURED, Entry, Shown, Table, percent
from lab.errors import RunError
from lab.numbers.metrics import BOUNDS
from lab.numbers.statistics import Estimate, seeds_proportion, student_mean, wilson
from lab.runs import Run
from lab.sweeping.config import LengthCurvesResults, ValuesResults


class Row(NamedTuple):
    """The finished runs of a cell."""

    labels: Mapping[str, str]
    """What is tried, and the value of this cell, as in `SweepCell`."""
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
    # Curves are told apart by their tasks; only if cells share a task, the label must name the tasks, too.
    found = [length_curves.across_seeds([length_curves.of_run(run) for run in row.runs]) for row in rows]
    short = [", ".join(text for key, text in row.labels.items() if key != "data.tasks") or "all" for row in rows]
    told_apart = [(label, task) for label, curve in zip(short, found, strict=True) for task in curve]
    labels = short if len(set(told_apart)) == len(told_apart) else [_label(list(row.labels.values())) for row in rows]
    curves: dict[str, Curves] = {}
    for label, curve in zip(labels, found, strict=True):
        curves[label] = length_curves.together([curves.get(label, {}), curve])
    trained = {tuple(run.settings["data"]["lengths"]) for row in rows for run in row.runs}
    draw_length_curves(curves, trained.pop() if len(trained) == 1 else None, title, figure)
    return length_curves.by_metric(curves, f"{title}: exact match (%)", "exact_match")


def _values(results: ValuesResults, rows: Sequence[Row], title: str, figure: Path) -> Table:
    kinds = [(name, path, True) for name, path in results.shares.items()]
    kinds += [(name, path, False) for name, path in results.means.items()]
    estimates = {name: [across_seeds(row.runs, path, share) for row in rows] for name, path, share in kinds}
    columns = tuple(rows[0].labels)
    shown: list[tuple[Entry, ...]] = []
    for index, row in enumerate(rows):
        cells = [_cell(estimates[name][index], share) for name, _, share in kinds]
        shown.append((*row.labels.values(), str(len(row.runs)), *cells))
    labels = [", ".join(row.labels.values()) for row in rows]
    shares = results.shares.keys()
    tried = ", ".join(column for column in columns if column != "cell")
    by_cell(labels, estimates, shares, tried, title, figure)
    return Table(title, (*columns, "seeds", *estimates), shown, len(columns))


def in_short(results: LengthCurvesResults | ValuesResults, table: Table) -> list[str]:
    """The cells with the highest and the lowest value: a line for the longest length, or one for each of the first
    three columns of values."""
    shown = [column for column in range(table.names, len(table.columns)) if table.columns[column] != "seeds"]
    lines = []
    for column in shown[-1:] if isinstance(results, LengthCurvesResults) else shown[:3]:
        cells = [(cell, _label(row[: table.names])) for row in table.rows if isinstance(cell := row[column], Shown)]
        if cells:
            cells.sort(key=lambda cell: -cell[0].estimate.value)
            (high, best), (low, worst) = cells[0], cells[-1]
            lowest = f", lowest {low} ({worst})" if len(cells) > 1 else ""
            lines.append(f"{table.columns[column]} (95 % interval): highest {high} ({best}){lowest}")
    return lines


def _label(names: Sequence[Entry]) -> str:
    return ", ".join(str(name) for name in names if str(name))


def across_seeds(runs: Sequence[Run], path: str, share: bool) -> Estimate | None:
    """The mean over runs with its 95 % interval; None if there are no runs.

    The interval of a share covers Student's over the runs and Wilson's over the problems of one run, because all runs
    may be asked the same. The interval of any other number is Student's, cut to the bounds of its metric. A single run
    keeps its own interval.

    Args:
        runs: the runs of one cell, one for each seed.
        path: the keys of the value (see `ValuesResults`).
        share: whether the value is a proportion of problems.
    """
    if not runs:
        return None
    found = [_pooled(run, path, share) for run in runs]
    if share:
        return seeds_proportion([part.value for part in found], min(part.n for part in found))
    if len(found) == 1:
        return found[0]
    bounds = BOUNDS.get(path.rpartition(".")[2], (-math.inf, math.inf))
    return student_mean([part.value for part in found], *bounds)


def _pooled(run: Run, path: str, share: bool) -> Estimate:
    """All that `path` matches in a run, as one estimate: shares are pooled over problems, other numbers averaged."""
    file, _, keys = path.rpartition(":")
    tree = run.read_json(file or "summary")
    found = [part for part in _at(tree, keys.split(".")) if _is_estimate(part) or (_is_number(part) and not share)]
    if not found:
        what = "proportion with its n" if share else "figure"
        raise RunError(f"{run.path}: results: there is no {what} at {path}{_there_is(tree, keys.split('.'))}")
    if share:
        right = sum(part["value"] * part["n"] for part in found)
        return wilson(round(right), sum(part["n"] for part in found))
    if len(found) == 1 and _is_estimate(found[0]):
        return Estimate.from_json(found[0])
    values = [part["value"] if _is_estimate(part) else float(part) for part in found]
    return student_mean([sum(values) / len(values)])


def _at(tree: Any, keys: Sequence[str]) -> Iterator[Any]:
    """All values at `keys` in a tree of mappings and lists."""
    if not keys:
        yield tree
        return
    for key, below in _children(tree).items():
        if keys[0] in ("*", key):
            yield from _at(below, keys[1:])


def _children(tree: Any) -> dict[str, Any]:
    items = enumerate(tree) if isinstance(tree, list) else tree.items() if isinstance(tree, dict) else ()
    return {str(key): below for key, below in items}


def _there_is(tree: Any, keys: Sequence[str]) -> str:
    """For an error: how far the path leads, and how it could continue."""
    for count in range(len(keys), -1, -1):
        if reached := list(_at(tree, keys[:count])):
            there = ", ".join(list(_children(reached[0]))[:12])
            return f"; {'.'.join(keys[:count]) or 'the file'} has {there or 'no keys'}"
    return ""


def _is_estimate(value: Any) -> bool:
    return isinstance(value, dict) and {"value", "low", "high", "n"} <= value.keys()


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cell(estimate: Estimate | None, share: bool) -> Entry:
    if estimate is None:
        return NOT_MEASURED
    if share:
        return percent(estimate)
    return Shown(estimate, "{:.4g} ({:.4g}-{:.4g})", 1)
