"""Figures of a run directory, for paper and screen (matplotlib)."""

from pathlib import Path

import matplotlib

from lab.reporting.tables import Change

matplotlib.use("Agg")


def before_after(rows: list[Change], title: str, path: Path) -> None:
    """A line a task and range, from the untuned model's exact match to the tuned one's, with 95 % intervals."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 0.26 * len(rows) + 1.4), layout="constrained")
    places = range(len(rows), 0, -1)
    for estimates, label, color in (("before", "untuned", "#9a9a9a"), ("after", "tuned", "#0a6ebd")):
        found = [getattr(row, estimates) for row in rows]
        errors = [[e["value"] - e["low"] for e in found], [e["high"] - e["value"] for e in found]]
        values = [e["value"] for e in found]
        axes.errorbar(values, places, xerr=errors, fmt="o", ms=4, lw=1, color=color, label=label, zorder=3)
    for place, row in zip(places, rows, strict=True):
        axes.plot([row.before["value"], row.after["value"]], [place, place], color="#d5e3ee", lw=5, zorder=1)
    axes.set_yticks(list(places), [f"{r.task} {r.representation}  {r.range} ({r.lengths})" for r in rows], fontsize=7)
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(0.3, len(rows) + 0.7)
    axes.set_xlabel("exact match, strict reading (95 % Wilson interval)")
    axes.set_title(title, fontsize=10)
    axes.grid(axis="x", color="#eeeeee")
    axes.legend(loc="lower right", fontsize=8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=140)
    pyplot.close(figure)
