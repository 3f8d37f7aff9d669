"""What the figures of the lab have in common: their look, error bars, and the forms that several rooms draw.

Figures of one benchmark alone stand beside it.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lab.numbers.statistics import Estimate

matplotlib.use("Agg")

COLORS = ("#0a6ebd", "#d9822b", "#3a9a5b", "#8a5fbf", "#c0392b", "#7f7f7f", "#17a2b8", "#b5a642")


@contextmanager
def figure_at(path: Path, figsize: tuple[float, float]) -> Iterator[Figure]:
    """A figure of so many inches, saved at `path` when the block ends without an error."""
    from matplotlib import pyplot

    figure = pyplot.figure(figsize=figsize, layout="constrained")
    try:
        yield figure
        for axes in figure.axes:
            axes.spines[["top", "right"]].set_visible(False)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=130)
    finally:
        pyplot.close(figure)


def plain(text: str) -> str:
    """The text as matplotlib shows it: a dollar would begin a formula, and a label that begins with _ is hidden."""
    escaped = text.replace("$", r"\$")
    return f"\u2009{escaped}" if escaped.startswith("_") else escaped


def interval(estimates: Sequence[Estimate]) -> tuple[list[float], list[float]]:
    """Lower and upper bounds. One that is infinite is not drawn: it becomes nan."""
    bounds = ([e.low for e in estimates], [e.high for e in estimates])
    low, high = ([bound if math.isfinite(bound) else math.nan for bound in side] for side in bounds)
    return low, high


def error_bars(estimates: Sequence[Estimate]) -> list[list[float]]:
    """How far the intervals reach below and above the values, as `errorbar` takes it."""
    low, high = interval(estimates)
    below = [e.value - bound for e, bound in zip(estimates, low, strict=True)]
    above = [bound - e.value for e, bound in zip(estimates, high, strict=True)]
    return [below, above]


def line_with_band(axes: Axes, points: Mapping[int, Estimate] | Mapping[float, Estimate], **look: Any) -> None:
    """A line through estimates by their place on the x axis, in a band of their intervals.

    A bound that lies beyond twice the largest value is cut: so few seeds shall not hide the lines.
    """
    places = sorted(points)
    found = [points[place] for place in places]  # type: ignore[index]
    highest = 2 * max(1.0, *(e.value for e in found))
    axes.plot(places, [e.value for e in found], **{"marker": "o", "ms": 2.5, "lw": 1.2, **look})
    low, high = interval(found)
    axes.fill_between(places, low, [min(bound, highest) for bound in high], color=look["color"], alpha=0.15, lw=0)


def panels(lines: Mapping[str, Mapping[str, Mapping[float, Estimate]]], x: str, title: str, path: Path) -> None:
    """A panel a quantity between 0 and 1, a line a label, points by x: estimates with their 95 % intervals."""
    with figure_at(path, figsize=(4.4 * len(lines) + 0.4, 3.6)) as figure:
        grid = figure.subplots(1, len(lines), squeeze=False, sharey=True)[0]
        labels = list(dict.fromkeys(label for panel in lines.values() for label in panel))
        for axes, (name, panel) in zip(grid, lines.items(), strict=True):
            for label, points in panel.items():
                line_with_band(axes, points, color=COLORS[labels.index(label) % len(COLORS)], label=label)
            axes.set(ylim=(-0.03, 1.03), xlabel=x)
            axes.xaxis.get_major_locator().set_params(integer=True)
            axes.set_title(name, fontsize=9)
            axes.grid(color="#eeeeee")
            axes.legend(fontsize=7)
        figure.suptitle(plain(title), fontsize=10)


def by_cell(
    labels: Sequence[str],
    estimates: Mapping[str, Sequence[Estimate | None]],
    shares: Collection[str],
    tried: str,
    title: str,
    path: Path,
) -> None:
    """A panel a quantity, a row a cell of a sweep, named by what is `tried`, with 95 % intervals; `shares` are between
    0 and 1.
    """
    with figure_at(path, figsize=(2 + 3.4 * len(estimates), 0.3 * len(labels) + 1.3)) as figure:
        grid = figure.subplots(1, len(estimates), squeeze=False, sharey=True)[0]
        for axes, (name, found) in zip(grid, estimates.items(), strict=True):
            for place, estimate in enumerate(found):
                look: dict[str, Any] = {"color": COLORS[0], "ms": 4, "lw": 1.2}
                if estimate:
                    axes.errorbar([estimate.value], [place], xerr=error_bars([estimate]), fmt="o", **look)
                else:
                    axes.annotate("not measured", (0.02, place), xycoords=("axes fraction", "data"), fontsize=6)
            if name in shares:
                axes.set_xlim(-0.03, 1.03)
            axes.set_title(plain(name), fontsize=9)
            axes.grid(axis="x", color="#eeeeee")
            axes.tick_params(labelsize=7)
            axes.set_ylim(len(labels) - 0.5, -0.5)
        grid[0].set_yticks(range(len(labels)), [plain(label) for label in labels])
        grid[0].set_ylabel(plain(tried), fontsize=8)
        figure.suptitle(plain(title), fontsize=10)
