"""How far can each probing instrument be trusted? The table and the figure of `lab probe benchmark`.

    python -m experiments.instruments-measured.run [output=checkpoints]

Runs configs/probe_benchmark.yaml, or resumes it, on adders whose circuits are known: adders that were written by hand,
and trained adders (lab/probing/benchmark). Leaves two tables and a figure in results/ beside the runs. The tables have
means over adders, with 95 % intervals by bootstrap over adders; the figure shows every adder.
"""

# %%
import csv
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from experiments.shared.arguments import own
from experiments.shared.publishing import beside_runs
from lab.drawing import figures
from lab.drawing.tables import Table
from lab.errors import exit_cleanly
from lab.probe import main as probe
from lab.probing.benchmark.running import mean

KINDS = ("smooth", "sharp", "bump", "trained")
"""Adders written by hand with smooth switches, with sharp ones, with a part that only seems to matter; and trained
ones."""
SHARP = ("sharp", "backup", "superposed", "leaning", "four layers")
"""Words in the names of adders whose switches are steps, so that no gradient passes through them."""
PARTS = ("AUROC", "missed", "false alarms", "CPR", "CMD")
DIRECTIONS = ("rate", "|cos|", "illusion unseen", "truth denied", "claimed before")
"""Measures of the instruments that find parts, and of those that find the carry's direction. Each is averaged over the
adders of each kind."""
OF_ALL = ("|cos| mended", "rate mended", "best random")
"""Measures of directions that are averaged over all adders."""

arguments = sys.argv[1:]
results = beside_runs(arguments)
given = exit_cleanly(own)(arguments, "output")
folder = Path(given.get("output", "checkpoints")) / "probe_benchmark"
probe(["benchmark", "probe_benchmark", f"output={folder.parent}", *(["resume=true"] if folder.exists() else [])])
scores = list(csv.DictReader((folder / "scores.csv").open()))


# %% Means over adders.
def kind(adder: str) -> str:
    if adder.startswith("trained"):
        return "trained"
    return "bump" if "bump" in adder else "sharp" if any(word in adder for word in SHARP) else "smooth"


def values(instrument: str, measure: str, kinds: Iterable[str] = KINDS) -> list[float]:
    wanted = (instrument, measure)
    of = [row for row in scores if (row["instrument"], row["measure"]) == wanted and kind(row["adder"]) in kinds]
    return [float(row["value"]) for row in of if not np.isnan(float(row["value"]))]


instruments = list(dict.fromkeys(row["instrument"] for row in scores))
adders = {name: [row["adder"] for row in scores if kind(row["adder"]) == name] for name in KINDS}
count = ", ".join(f"{len(set(names))} {name}" for name, names in adders.items() if names)
for table, measures, of_all in (("probe_benchmark", PARTS, ()), ("probe_benchmark_directions", DIRECTIONS, OF_ALL)):
    apart = [(measure, name) for measure in measures for name in KINDS if adders[name]]
    some = [one for one in instruments if one.endswith("(direction)") == (measures == DIRECTIONS)]
    rows = [
        (
            one,
            *(mean(values(one, measure, [name])) for measure, name in apart),
            *(mean(values(one, key)) for key in of_all),
        )
        for one in some
    ]
    columns = ("instrument", *(f"{measure}, {name}" for measure, name in apart), *of_all)
    results.show(Table(f"Instruments on adders whose circuits are known ({count}; 95 %)", columns, rows, 1), table)

# %% Every adder: AUROC of nodes and edges, and |cos| of directions.
shown = [(one, key) for one in instruments for key in ("AUROC", "|cos|") if values(one, key)]
with figures.figure_at(results.file("probe_benchmark.png"), figsize=(6.4, 0.36 * len(shown) + 1.2)) as figure:
    axes = figure.subplots()
    for color, name in zip(figures.COLORS, KINDS, strict=False):
        for place, (one, key) in enumerate(shown):
            found = values(one, key, [name])
            shift = 0.2 * (KINDS.index(name) - 1.5)
            axes.plot(found, [place + shift] * len(found), "o", ms=3.5, alpha=0.6, color=color,
                      label=name if place == 0 else None)  # fmt: skip
    axes.set_yticks(range(len(shown)), [f"{one}: {key}" for one, key in shown])
    axes.set(ylim=(len(shown) - 0.5, -0.5), xlim=(-0.03, 1.03))
    figure.suptitle("What each instrument finds of a known circuit; a point is an adder", fontsize="medium")
    axes.grid(axis="x", color="#eeeeee")
    figure.legend(loc="outside lower center", ncols=4)
