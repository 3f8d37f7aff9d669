"""Figures and values that several scripts use to show what they measured."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle, product
from pathlib import Path
from typing import Any

from lab.drawing.figures import COLORS, figure_at, headed, legend_below, line_with_band
from lab.drawing.tables import Entry, Shown
from lab.numbers.statistics import Estimate, student_mean


def panels(lines: Mapping[str, Mapping[str, Mapping[float, Estimate]]], x: str, y: str, title: str, path: Path) -> None:
    """One panel per quantity between 0 and 1, with one line per label and 95 % intervals.

    Args:
        lines: estimates as {quantity: {label: {x: estimate}}}.
        x: the label of the x axis.
        y: the label of the y axis.
        title: the title of the figure.
        path: the file to write.
    """
    columns = min(2, len(lines))
    rows = -(-len(lines) // columns)
    with figure_at(path, figsize=(3.6 * columns + 0.4, 2.7 * rows + 0.6)) as figure:
        grid = figure.subplots(rows, columns, squeeze=False, sharey=True).ravel()
        for axes in grid[len(lines) :]:
            axes.set_visible(False)
        labels = list(dict.fromkeys(label for panel in lines.values() for label in panel))
        of_label = dict(zip(labels, looks(), strict=False))
        for axes, (name, panel) in zip(grid, lines.items(), strict=False):
            for label, points in panel.items():
                line_with_band(axes, points, label=label, **of_label[label])
            axes.set(ylim=(-0.03, 1.03), xlabel=x)
            measured = sorted({value for points in panel.values() for value in points})
            axes.set_xticks(measured, [f"{value:g}" for value in measured])
            axes.set_title(name)
            axes.grid(color="#eeeeee")
        for axes in grid[::columns]:
            axes.set_ylabel(y)
        headed(figure, title)
        legend_below(figure, 3)


def looks() -> Iterator[dict[str, Any]]:
    """The styles of one line after another, without end: all colors with solid lines, then all colors with dashed
    lines, and so on."""
    return cycle({"color": color, "ls": style} for style, color in product(("-", "--", ":", "-."), COLORS))


def difference(values: Sequence[float]) -> Entry:
    """The mean of differences between shares, in percentage points, with Student's interval.

    Args:
        values: the difference for each seed; both shares are measured on the same problems. A single seed has no
            interval.
    """
    found = student_mean(values, -1, 1) if len(values) > 1 else student_mean(values)
    return Shown(found, "{:+.1f} ({:+.1f} to {:+.1f})", 100)
