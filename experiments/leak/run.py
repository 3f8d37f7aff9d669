"""Why does a model that was trained on one problem per sequence fail on long numbers, and what do packing and locality
cure?

    python -m experiments.leak.run [output=checkpoints] [lengths=10,20,50,100] [sums=50]

Measures the models of sweep.py packing and locality, trained on one problem per sequence, on sixteen, and on one
with locality. The leak is the share of attention that the aligned heads, at the query of a digit of the answer, give to
digits that this digit does not need. Exact match is measured without changes (vanilla), with only the leak removed,
with the aligned heads pointed at their digits, and with wrong operations as controls
(lab/probing/addition/surgery.py). Prints means over the seeds (95 %) and leaves a table and a figure in results/
beside the runs.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from experiments.shared import showing
from experiments.shared.arguments import own, whole_number, whole_numbers
from experiments.shared.publishing import beside_runs
from experiments.shared.sums import drawn
from lab.drawing.tables import Table, percent
from lab.errors import RunError, exit_cleanly
from lab.numbers.statistics import Estimate, seeds_proportion, student_mean
from lab.probing.addition.alignment import aligned_heads, alignment, destinations, one_hot
from lab.probing.addition.surgery import surgery
from lab.probing.bridge import open_model
from lab.progress import quiet_libraries

SETTINGS = {
    "one a sequence": "locality_without-locality_*",
    "sixteen packed": "packing_sixteen-packed_*",
    "one a sequence, local": "locality_trained-to-10_*",
}
TRAINED = 10
IN_WORDS = {
    "one a sequence": "one problem a sequence",
    "one a sequence, local": "with locality",
    "vanilla": "as trained",
    "no leak": "without the leak",
    "no leak, wrong place": "control: attention to the column below instead",
}
"""The settings and the operations that the figure shows."""
OPERATIONS = ("vanilla", "no leak", "no leak, wrong place", "alignment", "wrong offset", "other heads")


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    quiet_libraries()
    results = beside_runs(arguments)
    given = own(arguments, "lengths", "sums", "output")
    folder, count = Path(given.get("output", "checkpoints")), whole_number(given, "sums", 50)
    lengths = whole_numbers(given, "lengths", "10,20,50,100")
    runs = {setting: sorted(folder.glob(pattern)) for setting, pattern in SETTINGS.items()}
    if not any(runs.values()):
        raise RunError(f"{folder} has no runs of the sweeps: run python -m experiments.sweep packing or locality")
    leaks: dict[str, dict[float, Estimate]] = {}
    exact: dict[str, dict[str, dict[float, Estimate]]] = {}
    for setting, finished in runs.items():
        if seeds := [measure(run, lengths, count) for run in finished]:
            leaks[setting] = {n: student_mean([leak[n] for leak, _ in seeds], 0, 1) for n in lengths}
            exact[setting] = {
                name: {n: seeds_proportion([right[name][n] for _, right in seeds], count) for n in lengths}
                for name in OPERATIONS
            }
    rows = []
    for setting in leaks:
        rows.append((setting, "attention that leaks", *(percent(leaks[setting][n]) for n in lengths)))
        rows += [(setting, f"exact match, {name}", *map(percent, exact[setting][name].values())) for name in OPERATIONS]
    seeds_of = ", ".join(f"{len(runs[setting])} seeds of {setting}" for setting in leaks)
    title = f"Trained on 1-{TRAINED} digits ({seeds_of}; {count} sums a length and seed), %"
    results.show(Table(title, ("model", "", *(f"{n} digits" for n in lengths)), rows, 2), "leak")
    draw(leaks, exact, results.file("leak.png"))


def draw(
    leaks: Mapping[str, Mapping[float, Estimate]],
    exact: Mapping[str, Mapping[str, Mapping[float, Estimate]]],
    path: Path,
) -> None:
    """The leak of each setting, and the exact match of each setting and operation, against digits."""
    panels = {"leak: share of attention": {IN_WORDS.get(setting, setting): line for setting, line in leaks.items()}}
    for setting, lines in exact.items():
        shown = {IN_WORDS[name]: line for name, line in lines.items() if name in IN_WORDS}
        panels[f"exact match, {IN_WORDS.get(setting, setting)}"] = shown
    showing.panels(panels, "digits", "share", "What fails at length, and what cures it", path)


def measure(run: Path, lengths: Sequence[int], count: int) -> tuple[dict[int, float], dict[str, dict[int, float]]]:
    """The leak of a model by length, and its exact match by operation and length."""
    subject = open_model(str(run))
    sums = {n: drawn(subject, n, 0, count) for n in {*lengths, TRAINED}}
    aligned = one_hot(aligned_heads(alignment(subject, {TRAINED: sums[TRAINED]})))
    tested: dict[int | str, object] = {n: sums[n] for n in lengths}
    heads = {(one.layer, one.head) for one in aligned}
    leak = destinations(subject, tested).leak  # type: ignore[arg-type]
    exact = surgery(subject, tested, aligned).exact  # type: ignore[arg-type]
    return (
        {
            n: float(np.mean([leak.at(layer=layer, head=head, length=n).value for layer, head in heads]))
            for n in lengths
        },
        {name: {n: float(exact.at(operation=name, length=n).value) for n in lengths} for name in OPERATIONS},
    )


if __name__ == "__main__":
    main(sys.argv[1:])
