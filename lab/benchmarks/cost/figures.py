"""The figure of a cost comparison: seconds and accuracy against length."""

from pathlib import Path
from typing import Any

from matplotlib.ticker import MaxNLocator

from lab.benchmarks.cost import tables as cost
from lab.benchmarks.results import CostSummary
from lab.drawing.figures import COLORS, error_bars, figure_at, headed, legend_below, say_if_empty
from lab.numbers.statistics import Estimate


def cost_by_length(summary: CostSummary, title: str, path: Path) -> None:
    """Two small charts per task, against length, with 95 % intervals.

    One shows seconds per sample (log scale), with a line per variant. The other shows right answers, with one line for
    rule following and one for direct answers, because all variants of each write the same text.
    """
    tasks, variants = cost.tasks(summary), cost.variants_of(summary)
    typical = [next(iter(summary.rule_following)), next(iter(summary.direct))]
    columns = max(1, min(6, len(tasks)))
    rows = max(1, -(-len(tasks) // columns))
    with figure_at(path, figsize=(2.5 * columns + 0.6, 4.2 * rows + 1.0)) as figure:
        grid = figure.subplots(2 * rows, columns, sharey="row", squeeze=False)
        for index in range(rows * columns):
            above, below = grid[2 * (index // columns) : 2 * (index // columns) + 2, index % columns]
            if index >= len(tasks):
                above.set_visible(False)
                below.set_visible(False)
                continue
            task = tasks[index]
            lengths = cost.lengths(summary, task)
            for i, (name, variant) in enumerate(variants.items()):
                found = {length: variant.tasks[task].lengths[length] for length in lengths}
                look: dict[str, Any] = {"ms": 3, "lw": 1, "elinewidth": 0.7, "color": COLORS[i % len(COLORS)]}
                look |= {"fmt": "o-" if name in summary.direct else "s--", "label": name}
                for axes, shown in ((above, "seconds"), (below, "accuracy"))[: 1 + (name in typical)]:
                    known = {length: e for length, costs in found.items() if (e := getattr(costs, shown))}
                    estimates: list[Estimate] = list(known.values())
                    # slightly apart, so that no interval hides another
                    xs = [length + 0.06 * (i - (len(variants) - 1) / 2) for length in known]
                    axes.errorbar(xs, [e.value for e in estimates], error_bars(estimates), **look)
            above.set(title=task, **({"yscale": "log"} if above.has_data() else {}))
            below.set(ylim=(-0.04, 1.04), xlabel="length, digits")
            for axes in (above, below):
                say_if_empty(axes)
                axes.xaxis.set_major_locator(MaxNLocator(6, integer=True, min_n_ticks=1))
                axes.grid(color="#eeeeee")
        for row in range(rows):
            grid[2 * row][0].set_ylabel("seconds per sample")
            grid[2 * row + 1][0].set_ylabel("right, strict reading")
        headed(figure, title)
        legend_below(figure, 3)
