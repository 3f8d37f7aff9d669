"""Why do adders with RoPE fail beyond the lengths of their training, and what cures them without training?

    python experiments/rope_distances.py [output=checkpoints] [lengths=10,11,20,50,100,200,500] [sums=24]
                                         [publish=true]

Tests the models with RoPE of scratch_grid.py far_digits, which are trained on sums of at most ten digits, with changes
that need no training and no choice:

    weight      all digits four and more places away weigh no more than five of them would (`engine.far_at_most=5`, the
                value that other adders did best with, finding F-072)
    distance    a key that is farther away than digits ever are in training counts as if it were nine places away
                (`engine.clip_distance=9`)

To see whose distance matters, that of digits alone, or of signs alone, is clipped, too.

Sums of every length are drawn from the four strata in turn (lab/numbers/additions.py), and checked in one pass each.
Prints exact match by setting and length, mean over the seeds (95 %, the wider of Student's over the seeds and Wilson's
over their problems). What was right is kept in rope_distances.json beside each run.

Also measures how much of its attention a query that writes a digit would give to one more digit, by the distance of
this digit: the mean over sums of ten digits, the digits that their operands have, and layers and heads. Leaves a table
and a figure in results/ beside the runs, or in experiments/results/ with publish=true.
"""

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache, partial
from pathlib import Path

import torch
from shared.arguments import own, whole_number, whole_numbers
from shared.attention_scores import Scores, rescored
from shared.inserted_places import Row
from shared.kept import Kept
from shared.one_pass import right_tokens
from shared.publishing import take_results

from lab.drawing import figures
from lab.drawing.tables import Shown, Table
from lab.errors import RunError, exit_cleanly
from lab.models.loading import ScratchRun, load_scratch
from lab.models.scratch import NumberLlama
from lab.numbers.additions import STRATA, addition
from lab.numbers.sampling import Problem
from lab.numbers.statistics import Estimate, seeds_proportion
from lab.progress import quiet_libraries

ROOT = Path(__file__).parents[1]
SETTINGS = {
    "one layer": "far_rope_*",
    "one layer, twice the steps": "far_rope-2000-steps_*",
    "two layers": "far_rope-2-layers_*",
}
TRAINED = 10
FARTHEST = TRAINED - 1
CHANGES = ("as trained", "weight", "distance", "distance of digits", "distance of signs", "weight and distance")
DRAWN = ("weight", "distance", "weight and distance")
LENGTHS = "10,11,20,50,100,200,500"
DISTANCES = range(1, 51)
_MEASURED = 24
"""Sums whose attention is measured."""


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    quiet_libraries()
    results, rest = take_results(arguments, ROOT / "experiments" / "results")
    given = own(rest, "lengths", "sums", "output")
    folder, sums = Path(given.get("output", "checkpoints")), whole_number(given, "sums", 24)
    lengths = whole_numbers(given, "lengths", LENGTHS)
    runs = {setting: found for setting, pattern in SETTINGS.items() if (found := sorted(folder.glob(pattern)))}
    if not runs:
        raise RunError(f"{folder} has no runs of the sweep: run python experiments/scratch_grid.py far_digits")
    found = {
        (setting, change): exact_match(folders, change, lengths, sums)
        for setting, folders in runs.items()
        for change in CHANGES
    }
    rows = [
        (
            setting,
            str(len(runs[setting])),
            change,
            *(Shown(one, "{:.0f} ({:.0f}-{:.0f})", 100) for one in curve.values()),
        )
        for (setting, change), curve in found.items()
    ]
    title = f"Sums by models with RoPE, trained on 1-{TRAINED} digits: exact match (%), n={sums} a length and seed"
    results.show(Table(title, ("model", "seeds", "changed in the test", *map(str, lengths)), rows, 1), "rope_distances")
    attention = {
        setting: [
            Kept(run / "rope_distances.json").once("attention to one more digit", partial(attention_by_distance, run))
            for run in folders
        ]
        for setting, folders in runs.items()
    }
    for setting, seeds in attention.items():
        for near, far in ((4, FARTHEST), (TRAINED + 1, TRAINED + FARTHEST - 3)):
            shares = [100 * max(seed[near - 1 : far]) for seed in seeds]
            print(
                f"{setting}: a digit {near} to {far} places below gets at most {min(shares):.1f} to {max(shares):.1f} %"
            )
    draw(found, attention, results.file("rope_distances.png"))


def exact_match(folders: Sequence[Path], change: str, lengths: Sequence[int], sums: int) -> dict[int, Estimate]:
    """Exact match by length."""

    def right(run: ScratchRun, length: int) -> float:
        strata = list(STRATA)
        asked = [addition(strata[index % len(strata)], length, 0, index) for index in range(sums)]
        with changed(run.model, change):
            return right_tokens(run, asked).count(None) / sums

    found: dict[int, list[float]] = {length: [] for length in lengths}
    for folder in folders:
        kept, loaded = Kept(folder / "rope_distances.json"), cache(partial(load_scratch, folder))
        for length in lengths:
            measure = lambda length=length, loaded=loaded: right(loaded(), length)  # noqa: E731
            found[length].append(kept.once(f"{change}, {length} x {sums}", measure, "{:.3f}".format))
    return {length: seeds_proportion(shares, sums) for length, shares in found.items()}


@contextmanager
def changed(model: NumberLlama, change: str) -> Iterator[None]:
    """Within this context, one of CHANGES is made."""
    model.bound_far(5 if "weight" in change else 0)
    if change.startswith("distance of"):
        with clipped_alone(model, signs=change.endswith("signs")):
            yield
    else:
        model.clip_distances(FARTHEST if "distance" in change else 0)
        yield
        model.clip_distances(0)


def clipped_alone(model: NumberLlama, signs: bool) -> AbstractContextManager[None]:
    """Within this context, the distance of signs is clipped, or that of digits, and no other."""

    def rescore(scores: Scores, ids_BK: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        row = Row.of(model, ids_BK)
        at, ahead_BQK, is_clipped_BK = row.positions_BK, row.ahead(), (row.number_BK < 0) == signs
        scores_BHQK = scores.at(at, at, bias=False)
        for side in (-1, 1):
            edge_BHQK = scores.at(torch.zeros_like(at), torch.full_like(at, side * FARTHEST), bias=False)
            beyond_BQK = (ahead_BQK * side > FARTHEST) & is_clipped_BK[:, None]
            scores_BHQK = torch.where(beyond_BQK[:, None], edge_BHQK, scores_BHQK)
        return scores_BHQK + mask

    return rescored(model, rescore)


def attention_by_distance(folder: Path) -> list[float]:
    """The attention that one more digit would get at each of DISTANCES below a query of the answer."""
    run = load_scratch(folder)
    asked = (addition("uniform", TRAINED, 1, index) for index in range(_MEASURED))
    given = [shares for problem in asked for shares in attention_of_layers(run, problem)]
    return torch.tensor(given).mean(0).tolist()


@torch.inference_mode()
def attention_of_layers(run: ScratchRun, problem: Problem) -> list[list[float]]:
    """The same in one sum, for each layer."""
    words = ["<begin>", *run.notation.question(problem), *run.notation.answer(problem)]
    ids_1T = torch.tensor([run.tokenizer.convert_tokens_to_ids(words)])
    row = Row.of(run.model, ids_1T)
    writes_T = (row.number_BK[0] == 2) & (row.positions_BK[0] < row.positions_BK.max())  # the last one ends the answer
    is_asked_T = (row.number_BK[0] == 0) | (row.number_BK[0] == 1)
    layers: list[list[float]] = []

    def look(scores: Scores, _: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        at = row.positions_BK
        scores_BHQK = scores.at(at, at).masked_fill(mask == float("-inf"), float("-inf"))
        all_BHQ1 = scores_BHQK.logsumexp(-1, keepdim=True)
        layers.append([])
        for distance in DISTANCES:
            below_BHQK = scores.at(torch.full_like(at, distance), torch.zeros_like(at))
            one_more_BHQK = (below_BHQK - torch.logaddexp(below_BHQK, all_BHQ1)).exp()
            layers[-1].append(float(one_more_BHQK[:, :, writes_T][..., is_asked_T].mean()))
        return scores_BHQK

    with rescored(run.model, look):
        run.model(ids_1T)
    return layers


def draw(
    found: Mapping[tuple[str, str], Mapping[int, Estimate]],
    attention: Mapping[str, Sequence[Sequence[float]]],
    path: Path,
) -> None:
    """Of the models of one layer: left, the attention to one more digit by its distance, a line for each seed; right,
    exact match by length."""
    setting = next(iter(attention))
    with figures.figure_at(path, (8.6, 3.4)) as figure:
        looks, curves = figure.subplots(1, 2)
        looks.axvspan(1, FARTHEST, color="0.92", lw=0)
        for turns in range(1, int(DISTANCES[-1] / math.tau) + 1):  # the fastest pair of RoPE turns by one radian an id
            looks.axvline(turns * math.tau, color="0.6", lw=0.8, ls=":", label="whole turns" if turns == 1 else None)
        for color, seed in zip(figures.COLORS, attention[setting], strict=False):
            looks.plot(list(DISTANCES), [100 * share for share in seed], color=color, lw=1)
        looks.set(xlabel="places below (grey: seen in training)", ylabel="attention to one more digit (%)")
        looks.legend()
        curves.axvspan(1, TRAINED, color="0.92", lw=0)
        for color, change in zip(figures.COLORS, ("as trained", *DRAWN), strict=False):
            figures.line_with_band(curves, found[setting, change], color=color, label=change)
        lengths = [length for length in found[setting, "as trained"] if length != TRAINED + 1]
        curves.set(xscale="log", ylim=(-0.03, 1.03), xlim=(5, 1.1 * max(lengths)))
        curves.set(xlabel="digits (grey: seen in training)", ylabel="exact match")
        curves.set_xticks(lengths, labels=list(map(str, lengths)))
        curves.minorticks_off()
        curves.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


if __name__ == "__main__":
    main(sys.argv[1:])
