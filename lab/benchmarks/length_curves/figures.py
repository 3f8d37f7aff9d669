"""Figures of accuracy against length, and against the samples seen."""

from collections.abc import Mapping
from pathlib import Path

from lab.benchmarks.length_curves.tables import METRIC_NAMES
from lab.benchmarks.results import Curves, Scores
from lab.drawing.figures import COLORS, figure_at, headed, legend_below, legend_in, line_with_band, plain, say_if_empty


def length_curves(curves: Mapping[str, Curves], trained: tuple[int, int] | None, title: str, path: Path) -> None:
    """Charts against length, with 95 % intervals: one row per task, one column per metric, one line per model.

    Args:
        curves: the curves of each model, by label.
        trained: the shortest and the longest trained length, with a grey background between; None if models differ.
        title: the title of the figure.
        path: the file to write.
    """
    tasks = list(dict.fromkeys(task for curve in curves.values() for task in curve)) or [""]
    with figure_at(path, figsize=(10, 2.6 * len(tasks) + 1.1)) as figure:
        grid = figure.subplots(len(tasks), len(METRIC_NAMES), squeeze=False, sharex="row")
        for task, row in zip(tasks, grid, strict=True):
            for axes, (metric, name) in zip(row, METRIC_NAMES.items(), strict=True):
                for index, (label, curve) in enumerate(curves.items()):
                    if task not in curve:
                        continue
                    points = {length: scores.metric(metric) for length, scores in curve[task].items()}
                    again = {} if index < len(COLORS) else {"marker": "s", "ls": "--"}
                    line_with_band(axes, points, color=COLORS[index % len(COLORS)], label=plain(label), **again)
                if trained and axes.has_data():
                    axes.axvspan(trained[0] - 0.5, trained[1] + 0.5, color="#f2f2f2", zorder=0)
                say_if_empty(axes)
                axes.grid(color="#eeeeee")
                bounds = (0, max(1, axes.get_ylim()[1])) if metric == "dlength" else (-0.03, 1.03)
                axes.set(ylabel=name, ylim=bounds)
            row[1].set_title(task)
        for axes in grid[-1]:
            axes.set_xlabel("digits (grey: trained)" if trained else "digits")
        headed(figure, title)
        if len(curves) > 1:
            legend_below(figure, 5)


def training_curves(curves: Mapping[str, Mapping[int, Mapping[int, Scores]]], title: str, path: Path) -> None:
    """Exact match against the samples seen: a small chart per task, a line per length (Figures 4 and 9).

    Args:
        curves: scores as {task: {length: {samples seen: scores}}}.
        title: the title of the figure.
        path: the file to write.
    """
    panels = max(1, len(curves))
    with figure_at(path, figsize=(3.8 * panels + 0.4, 3.2)) as figure:
        grid = figure.subplots(1, panels, squeeze=False, sharey=True)[0]
        for axes, (task, lengths) in zip(grid, curves.items(), strict=False):
            for index, (length, scores) in enumerate(sorted(lengths.items())):
                points = {samples: found.exact_match for samples, found in scores.items()}
                line_with_band(axes, points, color=COLORS[index % len(COLORS)], label=str(length))
            axes.set(ylim=(-0.03, 1.03), xlabel="samples seen", title=task)
            axes.grid(color="#eeeeee")
        for axes in grid:
            say_if_empty(axes)
        grid[0].set_ylabel("exact match")
        legend_in(grid[0], title="digits")
        headed(figure, title)


def all_figures(curves: Mapping[str, Curves], title: str, folder: Path) -> None:
    """Every metric against length, in one figure."""
    length_curves(curves, None, f"{title}: {', '.join(curves)}", folder / "lengths.png")
