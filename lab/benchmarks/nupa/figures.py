"""Figures of NUPA: the paper's bars by range, and what tuning changed."""

import math
from collections.abc import Mapping
from pathlib import Path

from lab.benchmarks.nupa import tables as nupa
from lab.benchmarks.results import NupaSummary
from lab.drawing.figures import COLORS, error_bars, figure_at, headed, legend_below, plain, say_if_empty
from lab.numbers.metrics import METRICS
from lab.numbers.statistics import Estimate
from lab.numbers.tasks import Task


def before_after(rows: list[nupa.Change], title: str, path: Path) -> None:
    """One line per task and range, from the untuned model's exact match to the tuned one's, with 95 % intervals."""
    with figure_at(path, figsize=(8, 0.26 * len(rows) + 1.4)) as figure:
        axes = figure.subplots()
        places = range(len(rows), 0, -1)
        before, after = [row.difference.first for row in rows], [row.difference.second for row in rows]
        for found, label, color in ((before, "untuned", "#9a9a9a"), (after, "tuned", COLORS[0])):
            values, bars = [e.value for e in found], error_bars(found)
            axes.errorbar(values, places, xerr=bars, fmt="o", ms=4, lw=1, color=color, label=label, zorder=3)
        for place, old, new in zip(places, before, after, strict=True):
            axes.plot([old.value, new.value], [place, place], color="#d5e3ee", lw=5, zorder=1)
        axes.set_yticks(list(places), [f"{r.task} {r.representation}  {r.range} ({r.lengths})" for r in rows])
        axes.set(xlim=(-0.02, 1.02), ylim=(0.3, len(rows) + 0.7), title=plain(title))
        axes.set_xlabel("exact match, strict reading (95 % Wilson interval)")
        axes.grid(axis="x", color="#eeeeee")
        legend_below(figure, 2)


def nupa_by_range(summaries: Mapping[str, NupaSummary], metric: str, title: str, path: Path) -> None:
    """The paper's Figures 5-7, with 95 % intervals: a chart per task, a group of bars per range, a bar per model.

    Answers are read strictly. dlength is shown as log2(dlength + 1), as in Figure 7. Tasks without any exact or digit
    match are left out, and the title says how many.

    Args:
        summaries: the summaries to show, by label.
        metric: exact_match, digit_match or dlength.
        title: the title of the figure.
        path: the file to write.
    """
    scale = _logarithm if metric == "dlength" else float
    every = nupa.tasks(*summaries.values())
    found = {(task, label): _by_range(one, task, metric) for task in every for label, one in summaries.items()}
    seen = [task for task in every if any(e.value for label in summaries for e in found[task, label].values())]
    tasks = every if metric == "dlength" or not seen else seen
    left_out = f". Left out: {len(every) - len(tasks)} tasks where all are 0" if len(tasks) < len(every) else ""
    columns = max(1, min(6, len(tasks)))
    rows = max(1, -(-len(tasks) // columns))
    with figure_at(path, figsize=(2.3 * columns, 1.55 * rows + 0.7)) as figure:
        # with shared axes, matplotlib compares each panel with all others whenever it looks up a limit
        grid = figure.subplots(rows, columns, squeeze=False).ravel()
        width = 0.8 / len(summaries)
        for axes, task in zip(grid, tasks, strict=False):
            ranges = list(task.difficulty.ranges)
            for index, label in enumerate(summaries):
                bars = found[task, label]
                if not bars:
                    continue
                scaled = [Estimate(scale(e.value), scale(e.low), scale(e.high), e.n) for e in bars.values()]
                xs = [ranges.index(name) + (index + 0.5) * width - 0.4 for name in bars]
                axes.bar(
                    xs,
                    [e.value for e in scaled],
                    width,
                    yerr=error_bars(scaled),
                    color=COLORS[index % len(COLORS)],
                    error_kw={"lw": 0.7, "ecolor": "#444444"},
                    label=plain(label),
                )
            say_if_empty(axes)
            axes.set_title(f"{task.name} {task.representation.name}")
            axes.set_xticks(range(len(ranges)), ranges)
            if metric != "dlength":
                axes.set_ylim(0, 1)
                axes.tick_params(labelleft=axes.get_subplotspec().is_first_col())
        for axes in grid[len(tasks) :]:
            axes.set_visible(False)
        headed(figure, f"{title}{left_out}")
        legend_below(figure, len(summaries))


def all_figures(summaries: Mapping[str, NupaSummary], title: str, folder: Path) -> None:
    """Draws a figure for each metric, in the strict reading."""
    for metric in METRICS:
        shown = f"{title}: {metric.replace('_', ' ')}, strict reading, 95 % intervals"
        nupa_by_range(summaries, metric, shown, folder / f"{metric}.png")


def _by_range(summary: NupaSummary, task: Task, metric: str) -> dict[str, Estimate]:
    """The estimates of a task by range, where it was asked."""
    parts = summary[task.key].ranges if task.key in summary else {}
    return {name: e for name, part in parts.items() if (e := part.metric("strict", metric))}


def _logarithm(dlength: float) -> float:
    return math.log2(dlength + 1) if dlength > -1 else dlength  # the lower bound of a single value is infinite
