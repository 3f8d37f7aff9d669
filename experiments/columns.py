"""Redraws every table of exact match by length as a figure of the width of a paper's column.

    python experiments/columns.py [output=FOLDER] [publish=true]

A figure has a panel for each task, a line for each model, digits on a logarithmic axis, and 95 % intervals as bands.
The values come from the tables of the results (NAME.md), in whole percent. Writes NAME_column.svg beside each table.
"""

import re
import sys
from collections.abc import Mapping
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from shared.arguments import own
from shared.publishing import take_results
from shared.showing import looks

from lab.drawing.figures import STYLE, line_with_band, plain
from lab.errors import exit_cleanly
from lab.numbers.statistics import Estimate

WIDTH = 3.3
"""Inches."""
_VALUE = re.compile(r"(\d+) \((\d+)-(\d+)\)")

Curves = Mapping[str, Mapping[str, Mapping[int, Estimate]]]
"""Estimates by task, model and digits."""


def curves(table: str) -> Curves:
    """The curves of a table in Markdown; empty if its columns are not task, model and lengths."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("|")
    ]
    if not rows or rows[0][:2] != ["task", "model"] or not all(re.fullmatch(r"d\d+", name) for name in rows[0][2:]):
        return {}
    lengths = [int(name[1:]) for name in rows[0][2:]]
    found: dict[str, dict[str, dict[int, Estimate]]] = {}
    for task, model, *cells in rows[2:]:
        values = {length: _VALUE.fullmatch(cell) for length, cell in zip(lengths, cells, strict=True)}
        found.setdefault(task, {})[model] = {
            length: _estimate(*shown.groups()) for length, shown in values.items() if shown
        }
    return found


def _estimate(value: str, low: str, high: str) -> Estimate:
    return Estimate(int(value) / 100, int(low) / 100, int(high) / 100, 0)


def draw(found: Curves, path: Path) -> None:
    """An SVG of the curves at `path`."""
    with matplotlib.rc_context(STYLE):
        labels = list(dict.fromkeys(model for models in found.values() for model in models))
        look = dict(zip(labels, looks(), strict=False))
        legend = 0.17 * len(labels) + 0.1
        figure = Figure(figsize=(WIDTH, 1.55 * len(found) + legend + 0.3), layout="constrained")
        panels = figure.subplots(len(found), 1, squeeze=False, sharex=True).ravel()
        for axes, (task, models) in zip(panels, found.items(), strict=True):
            for model, points in models.items():
                line_with_band(axes, points, **look[model])
            axes.set(ylim=(-0.03, 1.03), ylabel="exact match", xscale="log", title=task)
            axes.grid(color="#eeeeee")
        ticks = sorted({length for models in found.values() for points in models.values() for length in points})
        panels[-1].set_xticks(ticks, [str(tick) for tick in ticks], minor=False)
        panels[-1].minorticks_off()
        panels[-1].set_xlabel("digits")
        lines = [Line2D([], [], marker="o", ms=2.5, lw=1.2, **look[label]) for label in labels]
        figure.legend(lines, [plain(label) for label in labels], loc="outside lower left")
        figure.savefig(path, metadata={"Date": None})


@exit_cleanly
def main() -> None:
    results, rest = take_results(sys.argv[1:], Path(__file__).parent / "results")
    own(rest, "output")
    for file in sorted(results.folder.glob("*.md")):
        if found := curves(file.read_text(encoding="utf-8")):
            draw(found, results.file(f"{file.stem}_column.svg"))


if __name__ == "__main__":
    main()
