"""Figures of run directories, for paper and screen (matplotlib)."""

import math
from collections.abc import Collection, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.ticker import MaxNLocator

from lab.numbers.taxonomy import OUTCOMES
from lab.reporting import cost, nupa
from lab.reporting.length_curves import METRIC_NAMES
from lab.text.answers import READINGS

matplotlib.use("Agg")

Summaries = Mapping[str, Mapping[str, Any]]

COLORS = ("#0a6ebd", "#d9822b", "#3a9a5b", "#8a5fbf", "#c0392b", "#7f7f7f", "#17a2b8", "#b5a642")
OUTCOME_COLORS = ("#4c9f70", "#d9822b", "#e8c15a", "#8a5fbf", "#c0504d", "#b0b0b0")


def before_after(rows: list[nupa.Change], title: str, path: Path) -> None:
    """A line a task and range, from the untuned model's exact match to the tuned one's, with 95 % intervals."""
    with _figure(path, figsize=(8, 0.26 * len(rows) + 1.4)) as figure:
        axes = figure.subplots()
        places = range(len(rows), 0, -1)
        for estimates, label, color in (("before", "untuned", "#9a9a9a"), ("after", "tuned", COLORS[0])):
            found = [getattr(row, estimates) for row in rows]
            values = [e["value"] for e in found]
            axes.errorbar(values, places, xerr=_errors(found), fmt="o", ms=4, lw=1, color=color, label=label, zorder=3)
        for place, row in zip(places, rows, strict=True):
            axes.plot([row.before["value"], row.after["value"]], [place, place], color="#d5e3ee", lw=5, zorder=1)
        axes.set_yticks(
            list(places), [f"{r.task} {r.representation}  {r.range} ({r.lengths})" for r in rows], fontsize=7
        )
        axes.set_xlim(-0.02, 1.02)
        axes.set_ylim(0.3, len(rows) + 0.7)
        axes.set_xlabel("exact match, strict reading (95 % Wilson interval)")
        axes.set_title(_plain(title), fontsize=10)
        axes.grid(axis="x", color="#eeeeee")
        axes.legend(loc="lower right", fontsize=8)


def nupa_by_range(summaries: Summaries, metric: str, reading: str, title: str, path: Path) -> None:
    """The paper's Figures 5-7: a small chart a task, a group of bars a range, a bar a model, with 95 % intervals.

    dlength is shown as log2(dlength + 1), as in Figure 7.
    """
    scale = (lambda value: math.log2(value + 1)) if metric == "dlength" else float
    tasks = nupa.tasks(*summaries.values())
    columns = min(6, len(tasks))
    rows = -(-len(tasks) // columns)
    with _figure(path, figsize=(2.3 * columns, 1.55 * rows + 0.7)) as figure:
        grid = figure.subplots(rows, columns, sharey=metric != "dlength", squeeze=False).ravel()
        width = 0.8 / len(summaries)
        for axes, task in zip(grid, tasks, strict=False):
            ranges = list(task.difficulty.ranges)
            for number, (label, summary) in enumerate(summaries.items()):
                parts = summary.get(task.key, {"ranges": {}})["ranges"]
                found = {name: part[reading][metric] for name, part in parts.items() if reading in part}
                scaled = [{key: scale(e[key]) for key in ("value", "low", "high")} for e in found.values()]
                places = [ranges.index(name) + (number + 0.5) * width - 0.4 for name in found]
                axes.bar(
                    places,
                    [e["value"] for e in scaled],
                    width,
                    yerr=_errors(scaled) if scaled else None,
                    color=COLORS[number % len(COLORS)],
                    error_kw={"lw": 0.7, "ecolor": "#444444"},
                    label=_plain(label),
                )
            axes.set_title(f"{task.name} {task.representation.name}", fontsize=7.5)
            axes.set_xticks(range(len(ranges)), ranges, fontsize=7)
            axes.tick_params(axis="y", labelsize=7)
            if metric != "dlength":
                axes.set_ylim(0, 1)
        for axes in grid[len(tasks) :]:
            axes.set_visible(False)
        figure.suptitle(_plain(title), fontsize=10)
        handles, labels = grid[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8)


def accuracy_by_digits(summaries: Summaries, title: str, path: Path) -> None:
    """A line a model: right sums against digits, strict reading solid with its 95 % interval, loose dashed."""
    with _figure(path, figsize=(7, 3.8)) as figure:
        axes = figure.subplots()
        for number, (label, summary) in enumerate(summaries.items()):
            color = COLORS[number % len(COLORS)]
            digits = sorted(map(int, summary["by_digits"]))
            strict, loose = ([summary["by_digits"][str(n)][reading] for n in digits] for reading in READINGS)
            axes.plot(digits, [e["value"] for e in strict], "o-", ms=3, lw=1.4, color=color, label=_plain(label))
            axes.plot(digits, [e["value"] for e in loose], "--", lw=1, color=color, label=_plain(f"{label}, loose"))
            axes.fill_between(
                digits, [e["low"] for e in strict], [e["high"] for e in strict], color=color, alpha=0.15, lw=0
            )
        axes.set_ylim(-0.02, 1.02)
        axes.set_xlabel("digits")
        axes.set_ylabel("right sums (95 % Wilson interval)")
        axes.set_title(_plain(title), fontsize=10)
        axes.grid(color="#eeeeee")
        axes.legend(fontsize=8)


def outcomes_by_digits(summary: Mapping[str, Any], title: str, path: Path) -> None:
    """Bars stacked to 100 %, one for each number of digits: right sums, classes of error, answers without a number."""
    with _figure(path, figsize=(7, 3.8)) as figure:
        axes = figure.subplots()
        digits = sorted(map(int, summary["by_digits"]))
        bottom = [0.0] * len(digits)
        for name, color in zip(OUTCOMES, OUTCOME_COLORS, strict=True):
            shares = [100 * summary["by_digits"][str(n)]["outcome_shares"][name]["value"] for n in digits]
            axes.bar(digits, shares, 0.85, bottom=bottom, color=color, label=name)
            bottom = [below + share for below, share in zip(bottom, shares, strict=True)]
        axes.set_ylim(0, 100)
        axes.set_xlabel("digits")
        axes.set_ylabel("% of what was answered")
        axes.set_title(_plain(title), fontsize=10)
        axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))


def cost_by_length(summary: Mapping[str, Any], title: str, path: Path) -> None:
    """Two small charts a task, against length and with 95 % intervals: seconds a sample (log scale), a line a variant,
    and right answers, a line for followed rules and one for direct answers, whose variants all write the same.
    """
    tasks, variants = cost.tasks(summary), cost.variants_of(summary)
    typical = [next(iter(summary[style])) for style in ("rule_following", "direct")]
    columns = min(6, len(tasks))
    rows = -(-len(tasks) // columns)
    with _figure(path, figsize=(2.5 * columns + 0.6, 4.2 * rows + 1.0)) as figure:
        grid = figure.subplots(2 * rows, columns, sharey="row", squeeze=False)
        for place in range(rows * columns):
            above, below = grid[2 * (place // columns) : 2 * (place // columns) + 2, place % columns]
            if place >= len(tasks):
                above.set_visible(False)
                below.set_visible(False)
                continue
            task = tasks[place]
            lengths = cost.lengths(summary, task)
            for number, (name, variant) in enumerate(variants.items()):
                found = [variant["tasks"][task]["lengths"][str(length)] for length in lengths]
                # a little apart, so that no interval hides another
                places = [length + 0.06 * (number - (len(variants) - 1) / 2) for length in lengths]
                look: dict[str, Any] = {"ms": 3, "lw": 1, "elinewidth": 0.7, "color": COLORS[number % len(COLORS)]}
                look |= {"fmt": "o-" if name in summary["direct"] else "s--", "label": name}
                for axes, shown in ((above, "seconds"), (below, "accuracy"))[: 1 + (name in typical)]:
                    estimates = [part[shown] for part in found]
                    axes.errorbar(places, [e["value"] for e in estimates], _errors(estimates), **look)
            above.set_yscale("log")
            above.set_title(task, fontsize=9)
            below.set_ylim(-0.04, 1.04)
            below.set_xlabel("length, digits", fontsize=8)
            for axes in (above, below):
                axes.xaxis.set_major_locator(MaxNLocator(6, integer=True, min_n_ticks=1))
                axes.tick_params(labelsize=7)
                axes.grid(color="#eeeeee")
        for row in range(rows):
            grid[2 * row][0].set_ylabel("seconds a sample", fontsize=8)
            grid[2 * row + 1][0].set_ylabel("right, strict reading", fontsize=8)
        figure.suptitle(_plain(title), fontsize=10)
        handles, labels = grid[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=min(3, len(labels)), fontsize=8)


def length_curves(curves: Mapping[str, Mapping[str, Any]], trained: tuple[int, int], title: str, path: Path) -> None:
    """A row a task, a column a metric, a line a model: against length, with 95 % intervals; grey is trained."""
    tasks = list(dict.fromkeys(task for curve in curves.values() for task in curve))
    with _figure(path, figsize=(10, 2.6 * len(tasks) + 1.1)) as figure:
        grid = figure.subplots(len(tasks), len(METRIC_NAMES), squeeze=False, sharex="row")
        for task, row in zip(tasks, grid, strict=True):
            for axes, (metric, name) in zip(row, METRIC_NAMES.items(), strict=True):
                for place, (label, curve) in enumerate(curves.items()):
                    if task not in curve:
                        continue
                    lengths = sorted(map(int, curve[task]))
                    found = [curve[task][str(length)][metric] for length in lengths]
                    color, values = COLORS[place % len(COLORS)], [e["value"] for e in found]
                    line = "o-" if place < len(COLORS) else "s--"
                    axes.plot(lengths, values, line, ms=2.5, lw=1.2, color=color, label=_plain(label))
                    # so few seeds that a bound is out of all proportion shall not hide the lines
                    highest = 2 * max(1.0, *values)
                    bounds = [e["low"] for e in found], [min(e["high"], highest) for e in found]
                    axes.fill_between(lengths, *bounds, color=color, alpha=0.12, lw=0)
                axes.axvspan(trained[0] - 0.5, trained[1] + 0.5, color="#f2f2f2", zorder=0)
                axes.grid(color="#eeeeee")
                axes.tick_params(labelsize=7)
                axes.set_ylabel(name, fontsize=8)
                if metric != "dlength":
                    axes.set_ylim(-0.03, 1.03)
            row[1].set_title(task, fontsize=9)
        for axes in grid[-1]:
            axes.set_xlabel("digits (grey: trained)", fontsize=8)
        figure.suptitle(_plain(title), fontsize=10)
        found = [axes[0].get_legend_handles_labels() for axes in grid]
        legend = {label: handle for handles, labels in found for handle, label in zip(handles, labels, strict=True)}
        figure.legend(legend.values(), legend, loc="outside lower center", ncols=min(5, len(legend)), fontsize=8)


def panels(
    lines: Mapping[str, Mapping[str, Mapping[float, Mapping[str, float]]]], x: str, title: str, path: Path
) -> None:
    """A panel a quantity between 0 and 1, a line a label, points by x: estimates with their 95 % intervals."""
    with _figure(path, figsize=(4.4 * len(lines) + 0.4, 3.6)) as figure:
        grid = figure.subplots(1, len(lines), squeeze=False, sharey=True)[0]
        labels = list(dict.fromkeys(label for panel in lines.values() for label in panel))
        for axes, (name, panel) in zip(grid, lines.items(), strict=True):
            for label, points in panel.items():
                found, color = [points[place] for place in sorted(points)], COLORS[labels.index(label) % len(COLORS)]
                axes.plot(sorted(points), [e["value"] for e in found], "o-", ms=3, lw=1.3, color=color, label=label)
                bounds = [e["low"] for e in found], [e["high"] for e in found]
                axes.fill_between(sorted(points), *bounds, color=color, alpha=0.15, lw=0)
            axes.set(ylim=(-0.03, 1.03), xlabel=x)
            axes.xaxis.get_major_locator().set_params(integer=True)
            axes.set_title(name, fontsize=9)
            axes.grid(color="#eeeeee")
            axes.legend(fontsize=7)
        figure.suptitle(_plain(title), fontsize=10)


def training_curves(curves: Mapping[str, Mapping[str, Mapping[int, Any]]], title: str, path: Path) -> None:
    """A small chart a task, a line a length: exact match against the samples seen (Figures 4 and 9)."""
    with _figure(path, figsize=(3.8 * len(curves) + 0.4, 3.2)) as figure:
        grid = figure.subplots(1, len(curves), squeeze=False, sharey=True)[0]
        for axes, (task, lengths) in zip(grid, curves.items(), strict=True):
            for place, (length, points) in enumerate(sorted(lengths.items(), key=lambda pair: int(pair[0]))):
                found = [points[samples]["exact_match"] for samples in sorted(points)]
                color = COLORS[place % len(COLORS)]
                axes.plot(sorted(points), [e["value"] for e in found], "o-", ms=2.5, lw=1.2, color=color, label=length)
                bounds = [e["low"] for e in found], [e["high"] for e in found]
                axes.fill_between(sorted(points), *bounds, color=color, alpha=0.15, lw=0)
            axes.set(ylim=(-0.03, 1.03), xlabel="samples seen")
            axes.set_title(task, fontsize=9)
            axes.grid(color="#eeeeee")
        grid[0].set_ylabel("exact match")
        grid[0].legend(title="digits", fontsize=8)
        figure.suptitle(_plain(title), fontsize=10)


def by_cell(
    labels: Sequence[str],
    estimates: Mapping[str, Sequence[Mapping[str, float] | None]],
    shares: Collection[str],
    tried: str,
    title: str,
    path: Path,
) -> None:
    """A panel a quantity, a row a cell of a sweep, named by what is `tried`, with 95 % intervals; `shares` are between
    0 and 1.
    """
    with _figure(path, figsize=(2 + 3.4 * len(estimates), 0.3 * len(labels) + 1.3)) as figure:
        grid = figure.subplots(1, len(estimates), squeeze=False, sharey=True)[0]
        for axes, (name, found) in zip(grid, estimates.items(), strict=True):
            for place, estimate in enumerate(found):
                look: dict[str, Any] = {"color": COLORS[0], "ms": 4, "lw": 1.2}
                if estimate:
                    bars = _errors([dict(estimate)]) if math.isfinite(estimate["high"]) else None
                    axes.errorbar([estimate["value"]], [place], xerr=bars, fmt="o", **look)
                else:
                    axes.annotate("not measured", (0.02, place), xycoords=("axes fraction", "data"), fontsize=6)
            if name in shares:
                axes.set_xlim(-0.03, 1.03)
            axes.set_title(_plain(name), fontsize=9)
            axes.grid(axis="x", color="#eeeeee")
            axes.tick_params(labelsize=7)
            axes.set_ylim(len(labels) - 0.5, -0.5)
        grid[0].set_yticks(range(len(labels)), [_plain(label) for label in labels])
        grid[0].set_ylabel(_plain(tried), fontsize=8)
        figure.suptitle(_plain(title), fontsize=10)


def learned_by_size(points: Mapping[str, tuple[int, Mapping[str, float]]], title: str, path: Path) -> None:
    """A point a model, at its parameters (log scale): the share of trainings that learn, with its 95 % interval."""
    with _figure(path, figsize=(7, 3.8)) as figure:
        axes = figure.subplots()
        for place, (label, (parameters, share)) in enumerate(points.items()):
            color, name = COLORS[place % len(COLORS)], _plain(f"{parameters:,}: {label}")
            axes.errorbar([parameters], [share["value"]], _errors([dict(share)]), fmt="o", color=color, label=name)
        axes.set_xscale("log")
        axes.set_ylim(-0.04, 1.04)
        axes.set_xlabel("parameters")
        axes.set_ylabel("learned (95 % Wilson interval)")
        axes.set_title(_plain(title), fontsize=9)
        axes.grid(color="#eeeeee")
        axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))


@contextmanager
def _figure(path: Path, figsize: tuple[float, float]):
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


def _plain(text: str) -> str:
    """The text as matplotlib shows it: a dollar would begin a formula, and a label that begins with _ is hidden."""
    escaped = text.replace("$", r"\$")
    return f"\u2009{escaped}" if escaped.startswith("_") else escaped


def _errors(estimates: list[dict[str, float]]) -> list[list[float]]:
    return [[e["value"] - e["low"] for e in estimates], [e["high"] - e["value"] for e in estimates]]
