"""The figures of findings, drawn from their results files as slots.yaml says."""

import io
from collections.abc import Iterator, Mapping
from typing import Any

import matplotlib
from matplotlib import pyplot
from matplotlib.axes import Axes

from experiments.rendering.rows import Rows
from experiments.rendering.slots import Expressions, FigureSlot, Shown
from lab.drawing.figures import COLORS, MOST_IN_A_ROW, STYLE, legend_below, line_with_band
from lab.numbers.statistics import Estimate

Settings = Mapping[str, Any]


def drawn(slot: FigureSlot, expressions: Expressions) -> str:
    """The figure as SVG: the same text on any day. Raises RunError if a point has no row."""
    rows = expressions.file(slot.of).where(**slot.where)
    panels = slot.panels or _values(rows, slot.panel)
    wide, high = min(len(panels), MOST_IN_A_ROW), -(-len(panels) // MOST_IN_A_ROW)
    with matplotlib.rc_context(STYLE):
        figure = pyplot.figure(figsize=(max(4.5, 2.8 * wide), 2.4 * high + 0.5), layout="constrained")
        grid = figure.subplots(high, wide, sharey=True, squeeze=False).flat
        for axes, (title, panel) in zip(grid, panels.items(), strict=False):
            _panel(axes, slot, expressions, rows.where(**panel), {**slot.where, **panel})
            axes.set(title=title)
        for axes in list(grid)[len(panels) :]:
            axes.set_visible(False)
        legend_below(figure, 3)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
        pyplot.close(figure)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n"


def _panel(axes: Axes, slot: FigureSlot, expressions: Expressions, rows: Rows, settings: Settings) -> None:
    """Draws the lines of a panel and labels its axes."""
    if slot.trained:
        axes.axvspan(0.9, slot.trained, color="0.92", lw=0)
    lines = slot.lines or _values(rows, slot.line)
    for number, (label, line) in enumerate(lines.items()):
        points = dict(_points(slot, expressions, rows.where(**line), {**settings, **line}))
        line_with_band(axes, points, color=COLORS[number % len(COLORS)], label=label)
    _labelled(axes, sorted({float(x) for line in lines.values() for x in rows.where(**line).distinct(slot.x)}), slot)


def _points(
    slot: FigureSlot, expressions: Expressions, rows: Rows, settings: Settings
) -> Iterator[tuple[float, Estimate]]:
    for x in rows.distinct(slot.x):
        found = expressions.value(slot.y, f"figure, {slot.x} {x}", {"of": slot.of, **settings, slot.x: x})
        yield float(x), found.estimate if isinstance(found, Shown) else Estimate(found, found, found, 1)


def _values(rows: Rows, column: str) -> dict[str, dict[str, str]]:
    """The settings of each value of a column; no settings without a column."""
    return {value: {column: value} for value in rows.distinct(column)} if column else {"": {}}


def _labelled(axes: Axes, xs: list[float], slot: FigureSlot) -> None:
    axes.set(xlabel=f"{slot.x_label} (grey: trained)" if slot.trained else slot.x_label, ylabel=slot.y_label)
    if slot.log:
        axes.set_yscale("log")
    else:
        axes.set_ylim(-0.03, 1.03)
    if xs[-1] >= 5 * xs[0] > 0:
        axes.set_xscale("log")
    axes.set_xticks(xs, [f"{x:,g}" for x in xs])
    axes.minorticks_off()
