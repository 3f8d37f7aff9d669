"""When do heads that line digits up, and the carry, appear in seeds that learn to add, and in seeds that do not?

    python -m experiments.in_time [seeds=0,1,2,3,4,5] [sums=200] [output=checkpoints] [key=value ...]

Trains configs/scratch_short.yaml with every seed and keeps the model of every hundredth step (`training.keep_steps`);
other arguments go to `lab.pretrain`. Some of these seeds learn four digits and some do not. Measured for each kept
model:

    exact match     at 3 and 4 digits, of 100 sums that were not trained on
    aligned         the largest attention that a head gives to the digit of place k of an operand, minus what it gives
                    this digit from another column's query (`lab.probing.addition.alignment`); four digits
    carry           how often an exchange along the difference of means changes digit 2 as the carry would, minus how
                    often it changes it the other way (`lab.probing.addition.interchange`); four digits, after the
                    second attention, the place of F-025, so that no place is chosen here

An event is the first step at which a measure reaches its value in EVENTS. Measurements are kept in in_time.json beside
each run. Leaves a table and a figure in results/ beside the runs.
"""

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np

from experiments.shared.arguments import own_and_others, whole_number
from experiments.shared.kept import Kept
from experiments.shared.publishing import beside_runs
from experiments.shared.sums import drawn
from experiments.shared.training import trained
from lab.config.loading import load
from lab.config.pretraining import PretrainConfig
from lab.drawing import figures
from lab.drawing.tables import Table
from lab.errors import exit_cleanly
from lab.probing.addition.alignment import alignment
from lab.probing.addition.interchange import interchange_all
from lab.probing.bridge import open_model
from lab.progress import quiet_libraries
from lab.runs import Run

ROOT = Path(__file__).parents[1]
CONFIG = ROOT / "configs" / "scratch_short.yaml"
DIGITS, COLUMN, LAYER = 4, 2, 1
EVERY = 100
EVENTS = {"3 digits": 0.5, "4 digits": 0.5, "aligned": 0.3, "carry": 0.2}
"""The measures, and the values that they have to reach."""
SHOWN_AS = {
    "3 digits": "three digits right",
    "4 digits": "four digits right",
    "aligned": "best head's alignment",
    "carry": "carry direction",
}
"""The names of the measures in the figure."""
MEASURES = tuple(EVENTS)
LEARNED = 0.5
"""A seed has learned if its exact match at four digits is at least this."""

Curve: TypeAlias = Mapping[int, float]
"""A measure by step."""


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    quiet_libraries()
    results = beside_runs(arguments)
    given, changes = own_and_others(arguments, "seeds", "sums")
    found = {
        seed: measured(seed, whole_number(given, "sums", 200), changes)
        for seed in given.get("seeds", "0,1,2,3,4,5").split(",")
    }
    rows = [
        (
            seed,
            *(f"{100 * last(curve[name]):.0f}" for name in MEASURES),
            *(event(curve[name], least) for name, least in EVENTS.items()),
        )
        for seed, curve in found.items()
    ]
    reached = (f"step with {100 * least:.0f} % {name}" for name, least in EVENTS.items())
    heads = ("seed", *(f"{name} (%)" for name in MEASURES), *reached)
    title = "At the end of training (%), and the first step at which a measure reaches a value"
    results.show(Table(title, heads, rows, 1), "in_time")
    draw(found, results.file("in_time.png"))


def measured(seed: str, sums: int, changes: Sequence[str]) -> Mapping[str, Curve]:
    """The measurements during a seed's training. Trains the seed first if that has not been done."""
    own = [f"training.evaluate_every={EVERY}", "training.keep_steps=true", "evaluation.while_training=[3, 4]"]
    config = load(PretrainConfig, CONFIG, [*own, *changes, f"name=in_time_{seed}", f"seed={seed}", "resume=true"])
    run = Run(trained(config))
    curves: dict[str, dict[int, float]] = {name: {} for name in MEASURES}
    for row in run.read("curve"):
        curves[f"{row['length']} digits"][row["step"]] = row["exact_match"]["value"]
    kept = Kept(run.path / "in_time.json")
    for folder in sorted((config.path / "steps").iterdir()):
        step = int(folder.name)
        curves["aligned"][step], curves["carry"][step] = kept.once(f"{step} {sums}", partial(look, folder, sums), str)
    return curves


def look(folder: Path, sums: int) -> tuple[float, float]:
    """How well the best head is aligned, and how often the exchanged direction changes a digit as the carry would."""
    subject = open_model(str(folder))
    seen = alignment(subject, {DIGITS: drawn(subject, DIGITS, 0, sums)})
    looked, elsewhere = (
        np.stack([part.at(number=number, offset=0, length=DIGITS).value for number in ("a", "b")])
        for part in (seen.attention, seen.permuted)
    )
    rates = interchange_all(subject, DIGITS, layers=[LAYER], sites=["mid"], columns=[COLUMN],
                            subspaces=["difference of means"], train_pairs=sums, test_pairs=sums).rates  # fmt: skip
    turned = rates.at(layer=LAYER, site="mid", column=COLUMN, change="interchange", direction="both")
    target, other = (
        float(turned.at(subspace="difference of means", outcome=outcome).value)
        for outcome in ("target", "other neighbour")
    )
    return float((looked - elsewhere).max()), target - other


def last(curve: Curve) -> float:
    return curve[max(curve)]


def event(curve: Curve, least: float) -> str:
    return str(next((step for step in sorted(curve) if curve[step] >= least), "never"))


def draw(found: Mapping[str, Mapping[str, Curve]], path: Path) -> None:
    """A panel for the seeds that learn and one for the others; a line for each measure and seed."""
    learned = {seed: last(curves["4 digits"]) >= LEARNED for seed, curves in found.items()}
    kinds = [which for which in (True, False) if which in learned.values()]
    with figures.figure_at(path, (3.4 * len(kinds) + 1, 2.8)) as figure:
        panels = figure.subplots(1, len(kinds), sharey=True, squeeze=False)[0]
        for axes, which in zip(panels, kinds, strict=True):
            seeds = [seed for seed in found if learned[seed] == which]
            for color, name in zip(figures.COLORS, MEASURES, strict=False):
                for seed in seeds:
                    points = sorted(found[seed][name].items())
                    label = SHOWN_AS[name] if seed == seeds[0] else None
                    axes.plot(*zip(*points, strict=True), color=color, lw=1.2, alpha=0.8, label=label)
            axes.set(xlabel="step", ylim=(-0.15, 1.05))
            axes.set_title(f"{'learn' if which else 'do not learn'} four digits: {len(seeds)} of {len(found)} seeds")
        panels[0].set(ylabel="share of sums, attention or exchanges")
        panels[-1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


if __name__ == "__main__":
    main(sys.argv[1:])
