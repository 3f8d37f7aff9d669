"""Can the length at which an adder fails be predicted from sums of the longest trained length alone?

    python -m experiments.reach-law.run [output=checkpoints] [sums=48]

For every model of sweep.py far_digits, without any bound:

    reach       the length from which more than half of the sums are wrong
    predicted   the length from which more than half of the sums of the longest trained length (five or ten digits) are
                wrong, if attention sees them as it would see sums of that length (shared/inserted_places.py)

Three more predictions change only one thing each, to see what makes a model fail: more digits, at distances that occur
in training; the existing digits farther away; or signs farther away.

Sums are drawn from the four strata in turn (lab/numbers/additions.py), and with another seed for predictions. The
length is searched between the trained length and GRID times it: the step in which the sums fail is halved until it is a
tenth of the length, and the reach is the geometric middle of this step. Shares of right sums are also compared at
LENGTHS. Measurements are kept in reach_law.json beside each run. Models that are wrong in more than a tenth of the sums
of the longest trained length are left out.

Prints each model's reach and predictions and, for each kind of model, their rank correlation, with a bootstrap interval
over models. Leaves two tables and a figure in results/ beside the runs.
"""

import math
import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import spearmanr

from experiments.shared.arguments import own, whole_number
from experiments.shared.inserted_places import Insertion, inserted
from experiments.shared.kept import Kept
from experiments.shared.one_pass import share_right
from experiments.shared.publishing import beside_runs
from lab.drawing import figures
from lab.drawing.tables import Table
from lab.errors import RunError, exit_cleanly
from lab.models.loading import ScratchRun, load_scratch
from lab.progress import quiet_libraries

GRID = (1.1, 1.2, 1.5, 2, 3, 5, 10, 20, 40, 64)
LONGEST = 640
LENGTHS = (11, 12, 15, 20, 30, 50, 100)
WHOLE, MORE = "predicted", "more digits alone"
TRIED_ON = ("relative-keys_0", "rope_0", "2-layers_0")
"""The models on which predictions were first tried."""
DRAWN = {
    "relative keys, one layer": ("relative keys", "2000 steps"),
    "relative keys, two and four layers": ("2 layers", "4 layers"),
    "relative keys, trained on five digits": ("5 digits",),
    "relative keys, four problems packed": ("packed",),
    "relative keys, slope 0.02": ("slope 0.02",),
    "relative keys, far digits copied in training": ("100 copies", "1000 copies"),
    "RoPE, one and two layers, three speeds": (
        "rope", "rope 2 layers", "rope 2000 steps", "rope factor 2", "rope factor 4",
    ),
    "RoPE, trained on five digits": ("rope 5 digits",),
    "RoPE with a slope, packed, or with far digits copied in training": (
        "rope slope 0.2", "rope packed", "rope 100 copies",
    ),
}  # fmt: skip
"""The kinds of models that have the same look in the figure."""


def insertions(places: int) -> dict[str, Insertion]:
    """What is inserted for each kind of prediction."""
    return {
        WHOLE: Insertion(places),
        MORE: Insertion(places, farther=False, signs=False),
        "farther digits alone": Insertion(places, more=False, signs=False),
        "farther signs alone": Insertion(places, more=False, farther=False),
    }


class Law(NamedTuple):
    """The measurements of one model."""

    name: str
    trained: int
    reach: float
    predicted: dict[str, float]
    """By kind of prediction. A reach of LONGEST means that the model has not failed there."""
    right: dict[int, tuple[float, float]]
    """The shares of right sums at LENGTHS, as they are and as predicted."""

    @property
    def kind(self) -> str:
        return self.name.rpartition("_")[0].replace("-", " ")


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    quiet_libraries()
    results = beside_runs(arguments)
    given = own(arguments, "sums", "output")
    folder, sums = Path(given.get("output", "checkpoints")), whole_number(given, "sums", 48)
    runs = [run for run in sorted(folder.glob("far_*_*")) if (run / "model").is_dir()]
    if not runs:
        raise RunError(f"{folder} has no runs of the sweep: run python -m experiments.sweep far_digits")
    found = [law for run in runs if (law := measured(run, sums))]
    columns = ("model", "reach", *insertions(0))
    rows = [(law.name, *map(in_digits, [law.reach, *law.predicted.values()])) for law in found]
    title = "The length at which half of the sums are wrong, and what sums of trained length predict"
    results.show(Table(title, columns, rows, 1), "reach_law")
    kinds = Table(f"{title}, by kind of model", ("model", "models", *columns[1:]), by_kind(found), 2)
    results.show(kinds, "reach_law_kinds")
    rotating = [law for law in found if law.name.startswith("rope")]
    others = [law for law in found if law not in rotating]
    untried = [law for law in found if law.name not in TRIED_ON]
    for which, laws in {"without RoPE": others, "with RoPE": rotating, "untried": untried, "in all": found}.items():
        if laws:
            print(in_short(which, laws))
    draw(found, results.file("reach_law.png"))


def measured(run: Path, sums: int) -> Law | None:
    """What is known of a run; None if the model does not add sums of its longest trained length, or has learned ids,
    in which places cannot be inserted."""
    kept, loaded = Kept(run / "reach_law.json"), cache(partial(load_scratch, run))
    trained = kept.once("trained", lambda: loaded().config.data.lengths[1])
    if kept.once("encoding", lambda: "learned" if "learned_ids" in loaded().config.parts else "") == "learned":
        return None

    def right(digits: int, kind: str = "as it is") -> float:
        """The share of right sums of this length, or of what `kind` predicts for it."""
        name = f"{digits} digits, {sums} sums, {kind}"
        return kept.once(name, lambda: share(loaded(), digits, sums, kind), "{:.3f}".format)

    if right(trained) < 0.9:
        return None
    return Law(
        run.name.removeprefix("far_"),
        trained,
        first_failure(right, trained),
        {kind: first_failure(partial(right, kind=kind), trained) for kind in insertions(0)},
        {length: (right(length), right(length, WHOLE)) for length in LENGTHS},
    )


def share(run: ScratchRun, digits: int, sums: int, kind: str) -> float:
    """The share of right sums of this length; with a kind of prediction, of sums of the longest trained length that are
    seen as if they had this length."""
    trained = run.config.data.lengths[1]
    insertion = insertions(digits - trained).get(kind)
    if insertion is None:
        return share_right(run, digits, sums)
    with inserted(run.model, insertion):
        return share_right(run, trained, sums, seed=1)


def first_failure(right: Callable[[int], float], trained: int) -> float:
    """Approximately the first length, from `trained` up, at which the share of right sums is below a half; LONGEST if
    there is none.

    It is the geometric middle of two lengths that are at most a tenth apart: the shares are above and below a half.
    """
    low = trained
    for high in (min(round(factor * trained), LONGEST) for factor in (*GRID, LONGEST)):
        if right(high) < 0.5:
            while high - low > max(1, 0.1 * low):
                middle = round(math.sqrt(low * high))
                low, high = (middle, high) if right(middle) >= 0.5 else (low, middle)
            return math.sqrt(low * high)
        low = high
    return LONGEST


def in_digits(length: float) -> str:
    return f"{length:.0f}" if length < LONGEST else f"> {LONGEST}"


def by_kind(found: Sequence[Law]) -> list[tuple[str, ...]]:
    """A row for each kind of model: how many there are, and the smallest and the largest of each length."""
    rows = []
    for kind in dict.fromkeys(law.kind for law in found):
        laws = [law for law in found if law.kind == kind]
        lengths = zip(*([law.reach, *law.predicted.values()] for law in laws), strict=True)
        ranges = [" to ".join(dict.fromkeys(map(in_digits, (min(some), max(some))))) for some in lengths]
        rows.append((kind, str(len(laws)), *ranges))
    return rows


def in_short(which: str, laws: Sequence[Law]) -> str:
    """The rank correlation of reach and prediction, and how far predictions are off."""
    rank, low, high = correlation([(law.predicted[WHOLE], law.reach) for law in laws])
    alone = correlation([(law.predicted[MORE], law.reach) for law in laws])[0]
    met = [law for law in laws if min(law.predicted[WHOLE], law.reach) < LONGEST]
    factors = sorted(2 ** abs(math.log2(law.predicted[WHOLE] / law.reach)) for law in met)
    apart = [abs(real - predicted) for law in laws for real, predicted in law.right.values()]
    return (
        f"{len(laws)} models, {which}: rank correlation {rank:.2f} ({low:.2f} to {high:.2f}), {alone:.2f} with only "
        f"more digits; of {len(met)} below {LONGEST} digits, half within a factor of {np.median(factors):.2f}, nine "
        f"in ten within {np.quantile(factors, 0.9):.2f}, all within {factors[-1]:.2f}; shares at {len(LENGTHS)} "
        f"lengths are {100 * float(np.mean(apart)):.1f} points apart"
    )


def correlation(pairs: Sequence[tuple[float, float]]) -> tuple[float, float, float]:
    """Spearman's rank correlation, with a percentile bootstrap over models (95 %)."""
    pairs_N2 = np.array(pairs)
    generator = np.random.default_rng(0)
    drawn = [rank_correlation(pairs_N2[generator.integers(len(pairs_N2), size=len(pairs_N2))]) for _ in range(2000)]
    low, high = np.nanquantile(drawn, [0.025, 0.975])
    return rank_correlation(pairs_N2), float(low), float(high)


def rank_correlation(pairs_N2: np.ndarray) -> float:
    return float(np.asarray(spearmanr(pairs_N2))[0])


def draw(found: Sequence[Law], path: Path) -> None:
    """On the left, reach against its prediction; on the right, shares of right sums against their predictions."""
    with figures.figure_at(path, (8.6, 4.6)) as figure:
        lengths, shares = figure.subplots(1, 2)
        lengths.plot([5, LONGEST], [5, LONGEST], color="0.7", lw=1)
        shares.plot([0, 1], [0, 1], color="0.7", lw=1)
        for color, (name, kinds) in zip(cycle(figures.COLORS), DRAWN.items(), strict=False):
            laws = [law for law in found if law.kind in kinds]
            style = {"color": color, "marker": "^" if "RoPE" in name else "o", "ms": 4, "ls": ""}
            lengths.plot([law.predicted[WHOLE] for law in laws], [law.reach for law in laws], label=name, **style)
            points = [point for law in laws for point in law.right.values()]
            shares.plot([predicted for _, predicted in points], [real for real, _ in points], alpha=0.6, **style)
        lengths.set(xscale="log", yscale="log")
        lengths.xaxis.set_major_formatter("{x:g}")
        lengths.yaxis.set_major_formatter("{x:g}")
        lengths.set(xlabel="predicted length (digits)", ylabel="length at which half is wrong (digits)")
        shares.set(xlabel="predicted share of right sums", ylabel=f"share at {LENGTHS[0]} to {LENGTHS[-1]} digits")
        figures.legend_below(figure, 2)


if __name__ == "__main__":
    main(sys.argv[1:])
