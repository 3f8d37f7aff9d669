"""Can the length at which a model fails be told from sums of the longest trained length alone?

    python experiments/reach_law.py [output=checkpoints] [sums=24] [publish=true]

For every model of scratch_grid.py far_digits, without any bound:

    tolerance   the number of copies that each far digit may count as (their logarithm is added to its score) until half
                of the sums of the longest trained length are wrong: five or ten digits, which all these models add
    reach       the length at which half of the sums are wrong

If a model fails at length because all far digits together weigh too much, and for no other reason, it fails when their
number has grown by the factor that it tolerates:

    far(reach) = tolerance x far(trained)       far(n): far digits that the last digit of a sum of n digits sees

Models with RoPE are a control: they turn keys at distances that they never saw, so they may fail for another reason.

Sums are drawn from the four strata in turn (lab/numbers/additions.py), those for the tolerance with another seed. Both
are searched by doubling and then by halving the step on a logarithmic scale, up to LONGEST digits. What is found is
kept in reach_law.json beside each run. Prints each model's prediction and reach, and their rank correlation with a
bootstrap interval over models; leaves a table and a figure in results/ beside the runs, or in experiments/results/ with
publish=true.
"""

import json
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import spearmanr
from shared.arguments import own, whole_number
from shared.one_pass import right_tokens
from shared.publishing import take_results

from lab.drawing import figures
from lab.drawing.tables import Table
from lab.errors import RunError, exit_cleanly
from lab.models.loading import ScratchRun, load_scratch
from lab.models.position_encodings import FAR, LocalityBias
from lab.numbers.additions import STRATA, addition
from lab.progress import quiet_libraries

ROOT = Path(__file__).parents[1]
LONGEST, MOST = 640, 4096
STEPS = 3
"""Halvings of the interval between the last length with most sums right and the first without."""


class Law(NamedTuple):
    """The measurements of one model. If reach or tolerance is the largest value that was tried, the true one may be
    larger."""

    name: str
    trained: int
    tolerance: float
    reach: float

    @property
    def predicted(self) -> float:
        """The length with as many far digits as trained sums have, times the copies that the model tolerates."""
        return length_with(self.tolerance * far_digits(self.trained))

    @property
    def rotates(self) -> bool:
        return self.name.startswith("rope")


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    quiet_libraries()
    results, rest = take_results(arguments, ROOT / "experiments" / "results")
    given = own(rest, "sums", "output")
    folder, sums = Path(given.get("output", "checkpoints")), whole_number(given, "sums", 24)
    runs = [run for run in sorted(folder.glob("far_*_*")) if (run / "model").is_dir()]
    if not runs:
        raise RunError(f"{folder} has no runs of the sweep: run python experiments/scratch_grid.py far_digits")
    found = [law for run in runs if (law := measured(run, sums))]
    met = [law for law in found if law.reach < LONGEST]
    rows = [
        (law.name, f"{law.tolerance:.1f}", f"{law.predicted:.0f}", f"{law.reach:.0f}" if law in met else f"> {LONGEST}")
        for law in found
    ]
    title = "Copies of far digits that a model tolerates at trained lengths, and how far it adds"
    results.show(Table(title, ("model", "tolerance (copies)", "predicted reach", "reach"), rows, 1), "reach_law")
    for kinds, laws in {"without RoPE": [law for law in found if not law.rotates], "of all": found}.items():
        rank, low, high = correlation(laws)
        errors = sorted(abs(math.log2(law.predicted / law.reach)) for law in laws if law in met)
        print(f"{len(laws)} models {kinds}: rank correlation {rank:.2f} ({low:.2f} to {high:.2f});", end=" ")
        print(f"of {len(errors)} that fail below {LONGEST} digits, half of the predictions are within a factor of "
              f"{2 ** float(np.median(errors)):.2f}, all within {2 ** errors[-1]:.2f}")  # fmt: skip
    draw(found, results.file("reach_law.png"))


def measured(run: Path, sums: int) -> Law | None:
    """What is known of a run; None if the model does not add sums of its longest trained length."""
    file = run / "reach_law.json"
    if not file.is_file():
        loaded = load_scratch(run)
        trained = loaded.config.data.lengths[1]

        def with_copies(copies: float) -> float:
            return share(loaded, trained, 2 * sums, copies, seed=1)

        def at_length(digits: float) -> float:
            return share(loaded, round(digits), sums if digits < 100 else max(8, sums // 2), 1, seed=0)

        adds = with_copies(1) >= 0.9
        values: dict[str, float] = {"trained": trained} if adds else {}
        if adds:
            values |= {"tolerance": limit(with_copies, 1, MOST), "reach": limit(at_length, trained, LONGEST)}
        file.write_text(json.dumps(values))
        print(run.name, values, flush=True)
    values = json.loads(file.read_text())
    if not values:
        return None
    return Law(run.name.removeprefix("far_"), int(values["trained"]), values["tolerance"], values["reach"])


def share(run: ScratchRun, digits: int, sums: int, copies: float, seed: int) -> float:
    """The share of right sums if each far digit counts as `copies` copies."""
    config = run.model.config
    bias = LocalityBias(config.locality, config.circle, far_copies=copies)
    run.model.position_bias = bias.train() if copies > 1 or config.locality else None
    strata = list(STRATA)
    asked = [addition(strata[index % len(strata)], digits, seed, index) for index in range(sums)]
    return right_tokens(run, asked).count(None) / sums


def limit(right: Callable[[float], float], start: float, most: float) -> float:
    """The value, from `start` up, at which the share of right sums falls below a half; `most` if it is never below."""
    low, high = start, 2 * start
    while right(high) >= 0.5:
        if high >= most:
            return most
        low, high = high, min(2 * high, most)
    for _ in range(STEPS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if right(middle) >= 0.5 else (low, middle)
    return math.sqrt(low * high)


def far_digits(digits: float) -> float:
    """The number of digits at least FAR places away that the last digit of a sum sees: of both numbers and of the
    sum."""
    return 3 * max(0, digits - FAR + 1)


def length_with(far: float) -> float:
    """The length of sums with `far` far digits."""
    return far / 3 + FAR - 1


def correlation(found: Sequence[Law]) -> tuple[float, float, float]:
    """Spearman's rank correlation of prediction and reach, with a percentile bootstrap over models (95 %)."""
    pairs = np.array([(min(law.predicted, LONGEST), law.reach) for law in found])
    generator = np.random.default_rng(0)
    drawn = [rank_correlation(pairs[generator.integers(len(pairs), size=len(pairs))]) for _ in range(2000)]
    low, high = np.nanquantile(drawn, [0.025, 0.975])
    return rank_correlation(pairs), float(low), float(high)


def rank_correlation(pairs_N2: np.ndarray) -> float:
    return float(np.asarray(spearmanr(pairs_N2))[0])


def draw(found: Sequence[Law], path: Path) -> None:
    kinds = sorted({law.name.rpartition("_")[0] for law in found})
    with figures.figure_at(path, (4.2, 3.4)) as figure:
        axes = figure.subplots()
        axes.plot([5, LONGEST], [5, LONGEST], color="0.7", lw=1)
        for color, kind in zip(figures.COLORS, kinds, strict=False):
            points = [law for law in found if law.name.rpartition("_")[0] == kind]
            across, up = [min(law.predicted, 4 * LONGEST) for law in points], [law.reach for law in points]
            axes.plot(across, up, "o", ms=4, color=color, label=kind)
        axes.set(
            xscale="log", yscale="log", xlabel="predicted from trained lengths", ylabel="digits at which half is wrong"
        )
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


if __name__ == "__main__":
    main(sys.argv[1:])
