"""Can a model learn by itself to ignore far digits, and does how often they count say how far it gets?

    python experiments/far_copies.py [output=checkpoints] [lengths=10,20,50,100,200,500,1000] [sums=24] [publish=true]

For the models of scratch_grid.py far_copies: one layer with relative keys, without window or slope, trained on sums of
at most ten digits while each far key counts as so many copies of itself (`model.far_copies`). A softmax that has to
find two digits among n must give them a score of about log n more than the others. Counted c times, far digits teach a
model of ten digits the margin that c times as many digits need; so the expected reach is 10 c digits.

Beside them are the models that counted each far digit once, whose far digits are discounted in the test alone: from
their scores the logarithm of 10 or 100 is taken, or of how many times longer the numbers are than in training, so that
all far digits together weigh as much as there. If that does as well, training needs no copies.

Sums of every length are drawn from the four strata in turn (lab/numbers/additions.py), and checked in one pass each.
Prints exact match by setting and length, mean over the seeds (95 %, the wider of Student's over the seeds and Wilson's
over their problems), and the reach: the longest length up to which at least half of the sums are right. Answers are
kept in far_copies.json beside each run. Leaves a table and a figure in results/ beside the runs, or in
experiments/results/ with publish=true.
"""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch
from torch import nn

from lab.benchmarks.length_curves.one_pass import right_tokens
from lab.drawing import figures
from lab.drawing.publishing import take_results
from lab.drawing.tables import Shown, Table
from lab.errors import RunError, exit_cleanly
from lab.models.loading import load_scratch
from lab.models.position_encodings import LocalityBias
from lab.numbers.additions import STRATA, addition
from lab.numbers.statistics import Estimate, seeds_proportion
from lab.progress import quiet_libraries

ROOT = Path(__file__).parents[1]
TRAINED = 10
SETTINGS = {
    "once": "far_once_*",
    "10 times": "far_10-times_*",
    "100 times": "far_100-times_*",
    "1000 times": "far_1000-times_*",
    "100 times, learned ids": "far_100-times-learned-ids_*",
    "slope 1, by hand": "far_slope-1_*",
}
"""How often a far digit counts, and the runs."""
DISCOUNTS: dict[str, Callable[[int], float]] = {
    "10 times": lambda digits: 10,
    "100 times": lambda digits: 100,
    "by length": lambda digits: max(1, digits / TRAINED),
}
LENGTHS = "10,20,50,100,200,500,1000"


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    quiet_libraries()
    results, rest = take_results(arguments, ROOT / "experiments" / "results")
    given = dict(part.split("=", 1) for part in rest)
    folder, sums = Path(given.get("output", "checkpoints")), int(given.get("sums", 24))
    lengths = [int(part) for part in given.get("lengths", LENGTHS).split(",")]
    runs = {
        setting: finished
        for setting, pattern in SETTINGS.items()
        if (finished := [run for run in sorted(folder.glob(pattern)) if (run / "model").is_dir()])
    }
    if not runs:
        raise RunError(f"{folder} has no runs of the sweep: run python experiments/scratch_grid.py far_copies")
    found = {setting: [shares(run, lengths, sums) for run in finished] for setting, finished in runs.items()}
    for name, discount in DISCOUNTS.items():
        plain = [shares(run, lengths, sums, discount) for run in runs.get("once", [])]
        found |= {f"once, discounted {name} in the test": plain} if plain else {}
    curves = {
        setting: {length: seeds_proportion([seed[length] for seed in seeds], sums) for length in lengths}
        for setting, seeds in found.items()
    }
    rows = [
        (
            setting,
            str(len(found[setting])),
            *(Shown(estimate, "{:.0f} ({:.0f}-{:.0f})", 100) for estimate in curve.values()),
            ", ".join(str(reach(seed)) for seed in found[setting]),
        )
        for setting, curve in curves.items()
    ]
    title = f"Sums, trained on 1-{TRAINED} digits: exact match (%) by how often a far digit counted, n={sums} a seed"
    results.show(Table(title, ("counted", "seeds", *map(str, lengths), "reach by seed"), rows, 1), "far_copies")
    draw(curves, results.file("far_copies.png"))


class Discount(nn.Module):
    """Takes the logarithm of a factor from the scores of far keys, in the test."""

    def __init__(self, factor: float, circle: int | None) -> None:
        super().__init__()
        self.far = LocalityBias(0, circle, far_copies=factor).train()

    def forward(self, positions_BQ: torch.Tensor, positions_BK: torch.Tensor) -> torch.Tensor:
        return -self.far(positions_BQ, positions_BK)


def shares(
    run: Path, lengths: Sequence[int], sums: int, discount: Callable[[int], float] = lambda _: 1
) -> dict[int, float]:
    """The share of right sums by length; what is not known yet is asked."""
    file = run / "far_copies.json"
    known: dict[str, float] = json.loads(file.read_text()) if file.is_file() else {}
    loaded = None
    factors = {length: discount(length) for length in lengths}
    names = {length: f"{length} x {sums}" + f", discount {c:g}" * (c > 1) for length, c in factors.items()}
    for length, name in names.items():
        if name not in known:
            loaded = loaded or load_scratch(run)
            if factors[length] > 1:
                loaded.model.position_bias = Discount(factors[length], loaded.model.config.circle)
            strata = list(STRATA)
            asked = [addition(strata[index % len(strata)], length, 0, index) for index in range(sums)]
            known[name] = right_tokens(loaded, asked).count(None) / sums
            file.write_text(json.dumps(known))
            print(run.name, name, known[name], flush=True)
    return {length: known[name] for length, name in names.items()}


def reach(seed: Mapping[int, float]) -> int:
    """The longest tested length up to which at least half of the sums are right; 0 if there is none."""
    longest = 0
    for length in sorted(seed):
        if seed[length] < 0.5:
            break
        longest = length
    return longest


def draw(curves: Mapping[str, Mapping[int, Estimate]], path: Path) -> None:
    with figures.figure_at(path, (6.4, 3.2)) as figure:
        axes = figure.subplots()
        axes.axvspan(1, TRAINED, color="0.92", lw=0)
        for color, (setting, points) in zip(figures.COLORS, curves.items(), strict=False):
            figures.line_with_band(axes, points, color=color, label=setting)
        lengths = list(next(iter(curves.values())))
        axes.set(xscale="log", ylim=(-0.03, 1.03), xlim=(5, 1.1 * max(lengths)))
        axes.set_xticks(lengths, labels=list(map(str, lengths)))
        axes.minorticks_off()
        axes.set(xlabel="digits (trained on 1-10)", ylabel="exact match")
        axes.legend(title="a far digit counted", loc="center left", bbox_to_anchor=(1.0, 0.5))


if __name__ == "__main__":
    main(sys.argv[1:])
