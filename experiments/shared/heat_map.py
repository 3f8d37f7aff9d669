"""Shares as a heat map, with each share in percent in its cell."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes


def heat_map(
    axes: Axes,
    values: Sequence[Sequence[float]],
    rows: Sequence[str],
    columns: Sequence[str],
    size: float | None = None,
) -> Any:
    """Draws shares (rows, columns) in percent, red for 0 and green for 100. Returns the image.

    `size`: the font size in the cells, in points; row names are one point larger. By default, the style's sizes are
    used.
    """
    shown = [[100 * value for value in line] for line in values]
    image = axes.imshow(shown, vmin=0, vmax=100, cmap="RdYlGn", aspect="auto")
    for row, line in enumerate(values):
        for column, value in enumerate(line):
            color = "white" if abs(value - 0.5) > 0.4 else "black"  # both ends of the colour map are dark
            axes.text(column, row, f"{100 * value:.0f}", ha="center", va="center", fontsize=size, color=color)
    axes.set_xticks(range(len(columns)), labels=columns)
    axes.set_yticks(range(len(rows)), labels=rows, fontsize=size and size + 1)
    return image
