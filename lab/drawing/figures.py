"""What the lab's figures share: their style (number-lab.mplstyle), error bars, and charts that several packages draw.

Figures of a single benchmark are in the folder of that benchmark.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import fill
from typing import Any

import matplotlib
from matplotlib import rc_params_from_file
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from lab.numbers.statistics import Estimate

matplotlib.use("Agg")

STYLE = rc_params_from_file(Path(__file__).with_name("number-lab.mplstyle"), use_default_template=False)
COLORS: tuple[str, ...] = tuple(STYLE["axes.prop_cycle"].by_key()["color"])
MOST_IN_A_ROW = 3
"""The most panels side by side; with more, some could not be read."""


@contextmanager
def figure_at(path: Path, figsize: tuple[float, float]) -> Iterator[Figure]:
    """A figure that is saved when the block ends without an error: as PNG at `path`, and as SVG beside it.

    Args:
        path: the PNG file to write.
        figsize: width and height in inches.
    """
    from matplotlib import pyplot

    with matplotlib.rc_context(STYLE):
        figure = pyplot.figure(figsize=figsize, layout="constrained")
        try:
            yield figure
            path.parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(path)
            figure.set_layout_engine("none")  # the panels keep the places that they have found
            figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})  # the same bytes on any day
        finally:
            pyplot.close(figure)


def plain(text: str) -> str:
    """The text, escaped for matplotlib, in which a dollar sign begins a formula and a label that begins with _ is
    hidden."""
    escaped = text.replace("$", r"\$")
    return f"\u2009{escaped}" if escaped.startswith("_") else escaped


def headed(figure: Figure, title: str) -> None:
    """Writes a title above a figure, broken into lines that fit its width."""
    figure.suptitle(plain(fill(title, max(24, int(_CHARACTERS_AN_INCH * figure.get_figwidth())))))


_CHARACTERS_AN_INCH = 11


def legend_below(figure: Figure, columns: int) -> None:
    """Draws one legend for all panels below them; a label that several panels have appears once. No legend if no panel
    has a label.

    Args:
        figure: the figure.
        columns: the maximum number of columns.
    """
    handles: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if handles:
        ncols = min(columns, len(handles))
        figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=ncols)


def legend_in(axes: Axes, **look: Any) -> None:
    """Draws a legend in a panel, if it has a label. `look`: the properties of the legend."""
    if axes.get_legend_handles_labels()[1]:
        axes.legend(**look)


def say_if_empty(axes: Axes, message: str = "no question was answered") -> None:
    """Writes a message into a panel without any line, bar or point."""
    if not axes.has_data():
        axes.text(0.5, 0.5, message, transform=axes.transAxes, ha="center", va="center", color="#777777")


def interval(estimates: Sequence[Estimate]) -> tuple[list[float], list[float]]:
    """The lower and the upper bounds of the intervals. Infinite bounds become nan, so that they are not drawn."""
    bounds = ([e.low for e in estimates], [e.high for e in estimates])
    low, high = ([bound if math.isfinite(bound) else math.nan for bound in side] for side in bounds)
    return low, high


def error_bars(estimates: Sequence[Estimate]) -> list[list[float]]:
    """How far the intervals extend below and above the values, in the form that `errorbar` takes."""
    low, high = interval(estimates)
    below = [e.value - bound for e, bound in zip(estimates, low, strict=True)]
    above = [bound - e.value for e, bound in zip(estimates, high, strict=True)]
    return [below, above]


def line_with_band(axes: Axes, points: Mapping[int, Estimate] | Mapping[float, Estimate], **look: Any) -> None:
    """Draws a line through estimates, inside a band of their intervals.

    The band is cut off at twice the largest value (or at 2 if all values are below 1), so that the very wide bands of a
    few seeds do not flatten the lines. Without points, nothing is drawn.

    Args:
        axes: where to draw.
        points: the estimates, by their x coordinate.
        look: the color and other properties of the line.
    """
    if not points:
        return
    xs = sorted(points)
    found = [points[x] for x in xs]  # type: ignore[index]
    highest = 2 * max(1.0, *(e.value for e in found))
    axes.plot(xs, [e.value for e in found], **{"marker": "o", "ms": 2.5, "lw": 1.2, **look})
    low, high = interval(found)
    axes.fill_between(xs, low, [min(bound, highest) for bound in high], color=look["color"], alpha=0.15, lw=0)


def by_cell(
    labels: Sequence[str],
    estimates: Mapping[str, Sequence[Estimate | None]],
    shares: Collection[str],
    tried: str,
    title: str,
    path: Path,
) -> None:
    """One panel per quantity and one row per cell of a sweep, with 95 % intervals.

    Args:
        labels: the names of the cells.
        estimates: for each quantity, the estimate of each cell; None if it was not measured.
        shares: the quantities that are between 0 and 1.
        tried: what the sweep tries, as the label of the y axis; empty if the names of the cells say it.
        title: the title of the figure.
        path: the file to write.
    """
    columns = max(1, min(len(estimates), MOST_IN_A_ROW))
    rows = max(1, math.ceil(len(estimates) / columns))
    with figure_at(path, figsize=(2 + 3.4 * columns, rows * (0.3 * len(labels) + 0.9) + 0.4)) as figure:
        grid = figure.subplots(rows, columns, squeeze=False, sharey=True)
        for axes in grid.flat[len(estimates) :]:
            axes.set_axis_off()
        for axes, (name, found) in zip(grid.flat, estimates.items(), strict=False):
            for row, estimate in enumerate(found):
                if estimate:
                    bars = error_bars([estimate])
                    axes.errorbar([estimate.value], [row], xerr=bars, fmt="o", color=COLORS[0], ms=4, lw=1.2)
                else:
                    axes.annotate("not measured", (0.02, row), xycoords=("axes fraction", "data"), fontsize=6)
            if name in shares:
                axes.set_xlim(-0.03, 1.03)
                axes.xaxis.set_major_formatter(PercentFormatter(1, symbol=None))
            axes.set_xlabel(plain(f"{name} (%)" if name in shares else name))
            axes.grid(axis="x", color="#eeeeee")
            axes.set_ylim(len(labels) - 0.5, -0.5)
        grid[0, 0].set_yticks(range(len(labels)), [plain(label) for label in labels])
        for axes in grid[:, 0]:
            axes.set_ylabel(plain(tried))
        headed(figure, title)
