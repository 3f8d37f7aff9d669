"""Do adders write digits on a helix and read them from it, and do their neurons follow simple rules?

    python -m experiments.helix [models=NAME,NAME,...] [sums=1000] [problems=100] [only=digits/neurons]
                                [fits=FIT,FIT,...] [layers=0,10,...] [table=helix]

For each model, the script measures how well a helix and its controls explain the mean vectors of the ten digits at the
tokens of a_k, and how often the sum's digit follows if another digit is patched in along them
(lab/probing/addition/helix.py). It also measures how many of the hundred neurons that write the digit follow a rule,
and how many digits become wrong without the neurons whose rules hold (lab/probing/addition/heuristics.py). Sums have
as many digits as the model can add (three for SmolLM2), and k is the column below the highest.

`models`: run directories and names of models; by default, the adders of the zoo that TransformerLens can open. `only`:
which of the two is measured. `fits=rivals`: the three periods beside other sets of periods and principal components,
without a figure. `layers`: where digits are patched in; by default, at most six layers. Leaves tables and a
figure.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from experiments.shared.arguments import own, some_of, whole_number, whole_numbers
from experiments.shared.estimates import shown
from experiments.shared.publishing import beside_runs
from experiments.shared.sums import drawn
from lab.drawing import figures
from lab.drawing.tables import Entry, Table
from lab.errors import exit_cleanly
from lab.probing.addition.helix import FITS, RIVALS, Helix, basis, helix
from lab.probing.addition.heuristics import Heuristics, heuristics
from lab.probing.bridge import open_model
from lab.progress import quiet_libraries

ZOO = ("zoo/adds-4-digits-nupa", "zoo/adds-10-without-locality", "zoo/adds-1000")
LENGTHS = {"zoo/adds-4-digits-nupa": 4, "zoo/adds-10-without-locality": 6, "zoo/adds-1000": 6}
LAYERS = 6
"""The largest number of layers of a model at which digits are patched in."""
SHOWN_AS = {
    "helix": "helix: a line and period 10",
    "polynomial": "cubic",
    "permuted helix": "helix of permuted digits",
    "three periods": "a line and periods 10, 5 and 2",
    "sextic": "polynomial of degree 6",
    "permuted periods": "the periods of permuted digits",
    "ramp": "a line",
    "all means": "all nine dimensions",
}
"""The names of fits in figures."""
RIVALLING = ("three periods", *RIVALS)
PARTS = DIGITS, NEURONS = "digits", "neurons"


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    quiet_libraries()
    results = beside_runs(arguments)
    given = own(arguments, "models", "sums", "problems", "only", "fits", "layers", "table")
    parts = some_of(PARTS, given.get("only"))
    fits = RIVALLING if given.get("fits") == "rivals" else some_of(FITS, given.get("fits"), "fits", ",")
    names = given["models"].split(",") if "models" in given else list(ZOO)
    table = given.get("table", "helix")
    count, problems = whole_number(given, "sums", 1000), whole_number(given, "problems", 100)
    turned: dict[str, Helix] = {}
    ruled: dict[str, Heuristics] = {}
    for name in names:
        subject, length = open_model(name), LENGTHS.get(name, 3)
        usual = ",".join(map(str, range(0, subject.layers, -(-subject.layers // LAYERS))))
        train, test = drawn(subject, length, 0, count), drawn(subject, length, count, problems)
        if DIGITS in parts:
            layers = whole_numbers(given, "layers", usual)
            turned[name] = helix(subject, train, test, length - 2, layers=layers, fits=fits)
            rivals = fits == RIVALLING
            results.show((rivals_table if rivals else helix_table)(turned, fits, problems), table)
            if not rivals:
                draw(turned, fits, results.file(f"{table}.png"))
        if NEURONS in parts:
            ruled[name] = heuristics(subject, train, length - 2)
            results.show(rules_table(ruled, count), f"{table}_neurons")


def helix_table(turned: dict[str, Helix], fits: Sequence[str], problems: int) -> Table:
    lines: list[tuple[Entry, ...]] = []
    for name, found in turned.items():
        for layer in found.turned.axes["layer"]:
            shares = [f"{100 * found.explained.at(layer=layer, fit=fit).value:.0f}" for fit in fits]
            followed = [shown(found.turned.at(layer=layer, fit=fit)) for fit in fits]
            lines.append((Path(name).name, str(layer), " / ".join(shares), *followed))
    heads = ("model", "layer", f"explained: {' / '.join(fits)}", *fits)
    return Table(f"Digits that follow what was put in, % (95 %), n={problems}", heads, lines, 3)


def rivals_table(turned: dict[str, Helix], fits: Sequence[str], problems: int) -> Table:
    """A row for each fit, and a column for each model and layer."""
    places = [(name, layer) for name, found in turned.items() for layer in found.turned.axes["layer"]]
    lines: list[tuple[Entry, ...]] = []
    for fit in fits:
        explained = [f"{100 * turned[name].explained.at(layer=layer, fit=fit).value:.0f}" for name, layer in places]
        followed = [shown(turned[name].turned.at(layer=layer, fit=fit)) for name, layer in places]
        lines.append((fit, str(basis(fit, means_MD=np.eye(10)).shape[1]), " / ".join(explained), *followed))
    heads = ("a line and", "dimensions", "explained", *(f"{Path(name).name}, layer {layer}" for name, layer in places))
    return Table(f"Digits that follow what was put in, % (95 %), n={problems}", heads, lines, 3)


def rules_table(ruled: dict[str, Heuristics], count: int) -> Table:
    lines: list[tuple[Entry, ...]] = []
    for name, found in ruled.items():
        families = [
            f"{family} {100 * found.by_family.at(family=family).value:.0f}" for family in found.by_family.axes["family"]
        ]
        matched = [shown(found.matched.at(sums=sums)) for sums in found.matched.axes["sums"]]
        kept = [shown(found.digits.at(removed=removed)) for removed in found.digits.axes["removed"]]
        lines.append((Path(name).name, *matched, ", ".join(families), *kept))
    heads = ("model", "neurons with a rule", "shuffled", "by family", "digits right", "without those that apply",
             "without as many others")  # fmt: skip
    return Table(f"Neurons that write a digit, and digits right without them, % (95 %), {count} sums", heads, lines, 1)


def draw(turned: dict[str, Helix], fits: Sequence[str], path: Path) -> None:
    """A panel for each model: digits that follow, against the layer, a line for each fit."""
    with figures.figure_at(path, (2.5 * max(2, len(turned)), 3.2)) as figure:
        panels = figure.subplots(1, max(2, len(turned)), sharey=True)
        for axes, (name, found) in zip(panels, turned.items(), strict=False):
            for fit in fits:
                values = [float(found.turned.at(layer=layer, fit=fit).value) for layer in found.turned.axes["layer"]]
                look = {"color": figures.COLORS[FITS.index(fit)], "label": SHOWN_AS[fit]}
                axes.plot(found.turned.axes["layer"], values, marker="o", ms=4, **look)
            title = Path(name).name.replace("smollm2_sums_", "seed ")
            axes.set(title=title, xlabel="layer", ylim=(-0.03, 1.03))
            axes.set_xticks(found.turned.axes["layer"])
        panels[0].set_ylabel("digits that follow")
        figures.legend_below(figure, 3)
        figures.headed(figure, "How often the sum's digit follows the digit that was put in along a fit")


if __name__ == "__main__":
    main(sys.argv[1:])
