"""Why does a model that was trained on one problem a sequence fail at length, and what do packing and locality cure?

    python experiments/leak.py [output=checkpoints] [lengths=10,20,50,100] [sums=50] [publish=true]

Measures the models of scratch_grid.py packing and locality, trained on one problem a sequence, on sixteen, and on one
with locality. The leak is the share of its attention that a query of the aligned heads gives to digits that its digit
of the answer does not need. Exact match is measured without changes (vanilla), with only the leak removed, with the
aligned heads pointed at their digits, and with wrong operations as controls (lab/probing/instruments/surgery.py).
Prints means over the seeds (95 %) and leaves a table and a figure in results/ beside the runs, or in
experiments/results/ with publish=true.
"""

# %%
import sys
from pathlib import Path

import numpy as np
from shared import showing
from shared.arguments import own, whole_number, whole_numbers
from shared.publishing import take_results

from lab.drawing.tables import Table, percent
from lab.errors import exit_cleanly
from lab.numbers.additions import addition
from lab.numbers.statistics import Estimate, seeds_proportion, student_mean
from lab.probing.bridge import open_model
from lab.probing.instruments.alignment import aligned_heads, alignment, destinations, one_hot
from lab.probing.instruments.surgery import surgery
from lab.progress import quiet_libraries

SETTINGS = {
    "one a sequence": "locality_without-locality_*",
    "sixteen packed": "packing_sixteen-packed_*",
    "one a sequence, local": "locality_trained-to-10_*",
}
TRAINED = 10
OPERATIONS = ("vanilla", "no leak", "no leak, wrong place", "alignment", "wrong offset", "other heads")

results, arguments = exit_cleanly(take_results)(sys.argv[1:], Path(__file__).parent / "results")
given = exit_cleanly(own)(arguments, "lengths", "sums", "output")
folder = Path(given.get("output", "checkpoints"))
LENGTHS = whole_numbers(given, "lengths", "10,20,50,100")
SUMS = whole_number(given, "sums", 50)
quiet_libraries()


# %% Measure one model: the leak by length, and exact match by operation and length.
def measure(run: Path) -> tuple[dict[int, float], dict[str, dict[int, float]]]:
    subject = open_model(str(run))
    drawn = {n: [addition("uniform", n, 0, i) for i in range(SUMS)] for n in {*LENGTHS, TRAINED}}
    sums = {n: subject.sums([(int(p.a), int(str(p.b))) for p in problems]) for n, problems in drawn.items()}
    aligned = one_hot(aligned_heads(alignment(subject, {TRAINED: sums[TRAINED]})))
    tested: dict[int | str, object] = {n: sums[n] for n in LENGTHS}
    heads = {(one.layer, one.head) for one in aligned}
    leak = destinations(subject, tested).leak  # type: ignore[arg-type]
    exact = surgery(subject, tested, aligned).exact  # type: ignore[arg-type]
    return (
        {
            n: float(np.mean([leak.at(layer=layer, head=head, length=n).value for layer, head in heads]))
            for n in LENGTHS
        },
        {name: {n: float(exact.at(operation=name, length=n).value) for n in LENGTHS} for name in OPERATIONS},
    )


runs = {setting: sorted(folder.glob(pattern)) for setting, pattern in SETTINGS.items()}
found = {setting: [measure(run) for run in finished] for setting, finished in runs.items() if finished}

# %% Means over the seeds.
leaks: dict[str, dict[float, Estimate]] = {}
exact: dict[str, dict[str, dict[float, Estimate]]] = {}
for setting, seeds in found.items():
    leaks[setting] = {n: student_mean([leak[n] for leak, _ in seeds], 0, 1) for n in LENGTHS}
    exact[setting] = {
        name: {n: seeds_proportion([right[name][n] for _, right in seeds], SUMS) for n in LENGTHS}
        for name in OPERATIONS
    }

# %% One table, one figure.
rows = []
for setting in found:
    mean = [percent(leaks[setting][n]) for n in LENGTHS]
    rows.append((setting, "attention that leaks", *mean))
    rows += [
        (setting, f"exact match, {name}", *(percent(exact[setting][name][n]) for n in LENGTHS)) for name in OPERATIONS
    ]
counts = ", ".join(f"{len(seeds)} seeds of {setting}" for setting, seeds in found.items())
title = f"Trained on 1-{TRAINED} digits ({counts}; {SUMS} sums a length and seed), %"
results.show(Table(title, ("model", "", *(f"{n} digits" for n in LENGTHS)), rows, 2), "leak")
panels = {"attention that leaks": leaks, **{f"exact match: {setting}": lines for setting, lines in exact.items()}}
showing.panels(panels, "digits", "What fails at length, and what cures it", results.file("leak.png"))
