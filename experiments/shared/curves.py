"""Exact match against digits: a panel for each kind of problem, a curve with its interval for each model."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.drawing.figures import figure_at, legend_below
from lab.numbers.statistics import Estimate


def curves(
    found: Mapping[str, Mapping[tuple[str, int], Estimate]],
    panels: Sequence[str],
    lengths: Sequence[int],
    trained: int,
    path: Path,
) -> None:
    """Draws the shares in `found`: by model, then by panel and length. `trained`: the longest trained length."""
    with figure_at(path, figsize=(9, 3.1)) as figure:
        places = figure.subplots(1, len(panels), sharey=True)
        for axes, panel in zip(places, panels, strict=True):
            for model, shares in found.items():
                curve = [shares[panel, length] for length in lengths]
                line = axes.plot(lengths, [one.value for one in curve], "-o", ms=3.5, label=model)[0]
                low, high = [one.low for one in curve], [one.high for one in curve]
                axes.fill_between(lengths, low, high, color=line.get_color(), alpha=0.15)
            axes.set(title=panel, xlabel=f"digits (trained on at most {trained})", xscale="log", ylim=(-0.03, 1.03))
            axes.set_xticks(lengths, list(map(str, lengths)))
            axes.minorticks_off()
        places[0].set_ylabel("exact match")
        legend_below(figure, len(found))
