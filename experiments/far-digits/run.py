"""Is the length that an adder reaches limited by the total weight of all far digits?

    python -m experiments.far-digits.run [output=checkpoints] [lengths=10,20,50,100,200,500,1000] [sums=24]

A softmax that has to find a few digits among n gives all the other digits together a weight that grows with n. Two
remedies need neither a window nor a slope:

    bound       only in the test, all far digits of a query together get at most the weight that a given number of them
                would get (parts.far_digits; far: 4 places and more). The number is chosen for each model on sums
                of 20 digits that are not used in the test: the first of BOUNDS with the most right sums.
    copies      during training, each far digit counts as a given number of copies of itself (parts.far_copies), so
                that a model trained on ten digits learns the margin that longer numbers need; nothing changes in the
                test.

    python -m experiments.far-digits.run controls=zoo/adds-10-without-locality [lengths=20,100,500] [sums=24]

compares the bound with two controls in one model: the same subtracted from the scores of as many digits drawn at
random, and scores multiplied by log(length) / log(10), or by whichever of TEMPERATURES is best at each length.

The first form tests the models of sweep.py far_digits, which are trained on sums of at most ten digits. Sums of every
length are drawn from the four strata in turn (lab/numbers/additions.py), and each is checked in one pass. Prints exact
match by setting and length, the mean over the seeds (95 % over seeds and problems). Answers are kept in far_digits.json
beside each run. Leaves a table and a figure in results/ beside the runs.
"""

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from experiments.shared.arguments import own, whole_number, whole_numbers
from experiments.shared.kept import Kept
from experiments.shared.one_pass import share_right
from experiments.shared.publishing import beside_runs
from lab.drawing import figures
from lab.drawing.tables import Table, percent
from lab.errors import RunError, exit_cleanly
from lab.models.loading import ScratchRun, load_scratch
from lab.models.sources import resolve
from lab.numbers.statistics import Estimate, seeds_proportion
from lab.parts.alibi import Biased
from lab.parts.far_digits import digits
from lab.parts.part import Act, Inputs, Step
from lab.progress import quiet_libraries

TRAINED, CHOSEN_AT = 10, 20
SETTINGS = {
    "one layer": "far_relative-keys_*",
    "two layers": "far_2-layers_*",
    "four layers": "far_4-layers_*",
    "one layer, RoPE": "far_rope_*",
    "one layer, learned ids": "far_learned-ids_*",
    "far digits copied 100 times": "far_100-copies_*",
    "far digits copied 1,000 times": "far_1000-copies_*",
}
BOUND = ", with the bound"
TEMPERATURES = (1.25, 1.5, 2, 3, 4, 6)
BOUNDS = (5, 10, 15, 20, 30)
LENGTHS = "10,20,50,100,200,500,1000"


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    quiet_libraries()
    results = beside_runs(arguments)
    given = own(arguments, "lengths", "sums", "output", "controls")
    if "controls" in given:
        lengths, sums = whole_numbers(given, "lengths", "20,100,500"), whole_number(given, "sums", 24)
        return results.show(controls(given["controls"], lengths, sums), "far_digits_controls")
    folder, sums = Path(given.get("output", "checkpoints")), whole_number(given, "sums", 24)
    lengths = whole_numbers(given, "lengths", LENGTHS)
    found: dict[str, list[dict[int, float]]] = {}
    for setting, pattern in SETTINGS.items():
        runs = [Model(run) for run in sorted(folder.glob(pattern)) if (run / "model").is_dir()]
        if runs:
            found[setting] = [run.shares(lengths, sums) for run in runs]
        if runs and "copied" not in setting:
            found[f"{setting}{BOUND}"] = [run.shares(lengths, sums, run.chosen(sums)) for run in runs]
    if not found:
        raise RunError(f"{folder} has no runs of the sweep: run python -m experiments.sweep far_digits")
    curves = {
        setting: {length: seeds_proportion([seed[length] for seed in seeds], sums) for length in lengths}
        for setting, seeds in found.items()
    }
    rows = [(setting, str(len(found[setting])), *map(percent, curve.values())) for setting, curve in curves.items()]
    title = f"Sums, trained on 1-{TRAINED} digits: exact match (%), n={sums} a length and seed"
    results.show(Table(title, ("model", "seeds", *map(str, lengths)), rows, 1), "far_digits")
    drawn = {setting: points for setting, points in curves.items() if setting.startswith("one layer")}
    if drawn:
        draw(drawn, results.file("far_digits.png"))


def controls(name: str, lengths: Sequence[int], sums: int) -> Table:
    """How many sums of each length are right with the bound, and with what may do the same."""
    run = load_scratch(Path(resolve(name)))
    rows: list[tuple[str, ...]] = []

    def add(label: str, right: Callable[[int], float]) -> None:
        rows.append((label, *(f"{round(sums * right(length))} of {sums}" for length in lengths)))
        print(*rows[-1], flush=True)

    def right(length: int) -> float:
        return share_right(run, length, sums)

    def sharpened(length: int, factor: float) -> float:
        run.model.sharpen(factor)
        return right(length)

    add("as trained", right)
    add("scores times log(length) / log(10)", lambda length: sharpened(length, math.log(length) / math.log(TRAINED)))
    best = "scores times the best of " + ", ".join(map(str, TEMPERATURES))
    add(best, lambda length: max(sharpened(length, factor) for factor in TEMPERATURES))
    run.model.sharpen(1)
    run.model.change_parts({"far_digits": {"at_most": BOUNDS[0]}})
    add("all far digits weigh at most as five of them", right)
    _elsewhere(run.model.parts["far_digits"])
    add("as many digits at random are weakened as much", right)
    return Table(f"Right sums of {Path(name).name}, trained on 1-{TRAINED} digits", ("", *map(str, lengths)), rows, 1)


def _elsewhere(part: Any) -> None:
    """Gives the bound of the part to as many visible digits that are drawn at random for each query."""
    draw, found = torch.Generator().manual_seed(0), part.act

    def act(inputs: Inputs, step: Step) -> Act:
        assert step.visible_BHQK is not None
        assert step.positions is not None
        bias_B1QK = found(inputs, step).bias_BHQK
        weakened_B1QK = (bias_B1QK < 0) & step.visible_BHQK
        digits_B1QK = digits(step.positions, step.visible_BHQK[:, 0])[:, None] & step.visible_BHQK
        chance_B1QK = torch.rand(bias_B1QK.shape, generator=draw).masked_fill(~digits_B1QK, 2)
        rank_B1QK = chance_B1QK.argsort(-1).argsort(-1)
        chosen_B1QK = digits_B1QK & (rank_B1QK < weakened_B1QK.sum(-1, keepdim=True))
        return Biased(chosen_B1QK * bias_B1QK.masked_fill(~weakened_B1QK, 0).amin(-1, keepdim=True))

    part.act = act


class Model:
    """A trained model and its measured shares. A share that is not known yet is measured when it is asked for."""

    def __init__(self, run: Path) -> None:
        self.run, self.kept = run, Kept(run / "far_digits.json")
        self.loaded: ScratchRun | None = None

    def shares(self, lengths: Sequence[int], sums: int, bound: int = 0) -> dict[int, float]:
        """The share of right sums by length."""
        return {length: self.share(length, sums, bound, seed=0) for length in lengths}

    def chosen(self, sums: int) -> int:
        """The bound that does best on other sums of 20 digits."""
        return max(BOUNDS, key=lambda bound: self.share(CHOSEN_AT, 2 * sums, bound, seed=1))

    def share(self, length: int, sums: int, bound: int, seed: int) -> float:
        def measure() -> float:
            self.loaded = self.loaded or load_scratch(self.run)
            self.loaded.model.change_parts({"far_digits": {"at_most": bound} if bound else None})
            return share_right(self.loaded, length, sums, seed)

        return self.kept.once(f"{length} x {sums}, bound {bound}, seed {seed}", measure, "{:.3f}".format)


def draw(curves: Mapping[str, Mapping[int, Estimate]], path: Path) -> None:
    """A colour for each kind of model: solid with the bound, dashed as it was trained."""
    colors = dict(zip((setting for setting in curves if BOUND not in setting), figures.COLORS, strict=False))
    with figures.figure_at(path, (7.2, 3.8)) as figure:
        axes = figure.subplots()
        axes.axvspan(1, TRAINED, color="0.92", lw=0)
        for setting, points in curves.items():
            color = colors[setting.removesuffix(BOUND)]
            if BOUND in setting:
                figures.line_with_band(axes, points, color=color, label=setting)
            else:  # without a band, so that the other bands can be told apart
                values = [estimate.value for estimate in points.values()]
                axes.plot(list(points), values, "--", color=color, lw=1.2, label=setting)
        lengths = list(next(iter(curves.values())))
        axes.set(xscale="log", ylim=(-0.03, 1.03), xlim=(5, 1.1 * max(lengths)))
        axes.set_xticks(lengths, labels=list(map(str, lengths)))
        axes.minorticks_off()
        axes.set(xlabel="digits (grey: trained)", ylabel="exact match")
        figures.legend_below(figure, 3)


if __name__ == "__main__":
    main(sys.argv[1:])
