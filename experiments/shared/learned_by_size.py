"""The figure of small adders of several sizes: the share of trainings that learn, against parameters."""

from collections.abc import Mapping
from pathlib import Path

from matplotlib.ticker import LogFormatter

from lab.drawing.figures import COLORS, error_bars, figure_at, plain
from lab.numbers.statistics import Estimate


def learned_by_size(points: Mapping[str, tuple[int, Estimate]], title: str, path: Path) -> None:
    """One point per model: its parameters (log scale), and the share of trainings that learn with its 95 % interval."""
    with figure_at(path, figsize=(7, 3.8)) as figure:
        axes = figure.subplots()
        for place, (label, (parameters, share)) in enumerate(points.items()):
            color, name = COLORS[place % len(COLORS)], plain(f"{parameters:,}: {label}")
            axes.errorbar([parameters], [share.value], error_bars([share]), fmt="o", color=color, label=name)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(LogFormatter())
        axes.xaxis.set_minor_formatter(LogFormatter())
        axes.set_ylim(-0.04, 1.04)
        axes.set_xlabel("parameters")
        axes.set_ylabel("learned (95 % Wilson interval)")
        axes.set_title(plain(title))
        axes.grid(color="#eeeeee")
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
