"""Why do adders with RoPE fail beyond the lengths of their training, and what cures them without training?

    python -m experiments.rope-distances.run [output=checkpoints] [lengths=10,11,12,20,25,50,100,200,500] [sums=24]

Tests the models with RoPE of sweep.py far_digits, which are trained on sums of at most ten digits, with changes
that need neither training nor tuning:

    weight      all digits four or more places away together weigh no more than five of them would
                (`engine.parts.far_digits.at_most=5`, the value with which other adders did best, finding F-072)
    distance    a key that is farther away than digits ever are in training counts as if it were nine places away
                (`engine.parts.clipped_distances.at=9`)

To see which distances matter, it also clips those of digits alone and of signs alone, and hides the digits at new
distances.

Sums of every length are drawn from the four strata in turn (lab/numbers/additions.py), and each is checked in one pass.
Prints exact match by setting and length, the mean over the seeds (95 % over seeds and problems). Results are kept in
rope_distances.json beside each run.

The script also measures how much attention one more digit would get in sums of ten digits, by its distance, and how
much the digits at new distances get in longer sums. Both are averaged over layers, heads and queries that write a
digit. Leaves a table and a figure in results/ beside the runs.
"""

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache, partial
from pathlib import Path

import torch

from experiments.shared.arguments import own, whole_number, whole_numbers
from experiments.shared.attention_scores import Scores, rescored
from experiments.shared.inserted_places import Row
from experiments.shared.kept import Kept
from experiments.shared.one_pass import share_right
from experiments.shared.publishing import beside_runs
from lab.drawing import figures
from lab.drawing.tables import Table, percent
from lab.errors import RunError, exit_cleanly
from lab.models.loading import ScratchRun, load_scratch
from lab.numbers.additions import addition
from lab.numbers.sampling import Problem
from lab.numbers.statistics import Estimate, seeds_proportion
from lab.progress import quiet_libraries
from lab.scratch.llama import NumberLlama

SETTINGS = {
    "one layer": "far_rope_*",
    "one layer, twice the steps": "far_rope-2000-steps_*",
    "two layers": "far_rope-2-layers_*",
    "one layer, a turn in 12.6 ids": "far_rope-factor-2_*",
    "one layer, a turn in 25.1 ids": "far_rope-factor-4_*",
}
TRAINED = 10
FARTHEST = TRAINED - 1
HIDDEN = "new distances hidden"
CHANGES = ("as trained", "weight", "distance", "distance of digits", "distance of signs", HIDDEN, "weight and distance")
DRAWN = {
    "as trained": "as trained",
    "weight": "far digits weigh at most as five",
    "distance": "clipped distance",
    "weight and distance": "clipped, and far digits weigh at most as five",
}
"""The changes in the figure, and their names there."""
LENGTHS = "10,11,12,20,25,50,100,200,500"
DISTANCES = range(-50, 51)
"""Above a query; negative ones are below it."""
_MEASURED = 24
"""Sums whose attention is measured."""


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    quiet_libraries()
    results = beside_runs(arguments)
    given = own(arguments, "lengths", "sums", "output")
    folder, sums = Path(given.get("output", "checkpoints")), whole_number(given, "sums", 24)
    lengths = whole_numbers(given, "lengths", LENGTHS)
    runs = {setting: found for setting, pattern in SETTINGS.items() if (found := sorted(folder.glob(pattern)))}
    if not runs:
        raise RunError(f"{folder} has no runs of the sweep: run python -m experiments.sweep far_digits")
    found = {
        (setting, change): exact_match(folders, change, lengths, sums)
        for setting, folders in runs.items()
        for change in CHANGES
    }
    rows = [
        (setting, str(len(runs[setting])), change, *map(percent, curve.values()))
        for (setting, change), curve in found.items()
    ]
    title = f"Sums by models with RoPE, trained on 1-{TRAINED} digits: exact match (%), n={sums} a length and seed"
    results.show(Table(title, ("model", "seeds", "changed in the test", *map(str, lengths)), rows, 1), "rope_distances")
    attention = {
        setting: [
            Kept(run / "rope_distances.json").once("one more digit", partial(attention_by_distance, run))
            for run in folders
        ]
        for setting, folders in runs.items()
    }
    for setting, seeds in attention.items():
        for near, far in ((4, FARTHEST), (TRAINED + 1, TRAINED + FARTHEST - 3)):
            for side, name in ((-1, "below"), (1, "above")):
                shares = [100 * max(seed[side * place + 50] for place in range(near, far + 1)) for seed in seeds]
                where = f"{near} to {far} places {name}"
                print(f"{setting}: a digit {where} gets at most {min(shares):.1f} to {max(shares):.1f} %")
        for digits in (TRAINED + 1, 2 * TRAINED):
            shares = [
                100
                * Kept(run / "rope_distances.json").once(
                    f"new, {digits}", partial(attention_to_new_distances, run, digits)
                )
                for run in runs[setting]
            ]
            print(f"{setting}: at {digits} digits, those at new distances get {min(shares):.0f} to {max(shares):.0f} %")
    draw(found, attention, results.file("rope_distances.png"))


def exact_match(folders: Sequence[Path], change: str, lengths: Sequence[int], sums: int) -> dict[int, Estimate]:
    """Exact match by length."""

    def right(run: ScratchRun, length: int) -> float:
        with changed(run.model, change):
            return share_right(run, length, sums)

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
    model.change_parts({"far_digits": {"at_most": 5} if "weight" in change else None})
    if change == HIDDEN:
        with rescored(model, partial(_without_new_distances, model)):
            yield
    elif change.startswith("distance of"):
        with clipped_alone(model, signs=change.endswith("signs")):
            yield
    else:
        model.change_parts({"clipped_distances": {"at": FARTHEST} if "distance" in change else None})
        yield
        model.change_parts({"clipped_distances": None})


def _without_new_distances(
    model: NumberLlama, scores: Scores, ids_BK: torch.Tensor, mask: torch.Tensor
) -> torch.Tensor:
    """The scores of a layer if no query sees digits that are farther away than in training."""
    row = Row.of(model, ids_BK)
    scores_BHQK = scores.at(row.positions_BK, row.positions_BK, bias=False) + mask
    return scores_BHQK.masked_fill(at_new_distances(row)[:, None], float("-inf"))


def at_new_distances(row: Row) -> torch.Tensor:
    """Which keys are digits that are farther from a query than in training, (B, Q, K)."""
    return (row.ahead().abs() > FARTHEST) & (row.number_BK >= 0)[:, None]


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
    """The attention that one more digit would get at each of DISTANCES."""
    run = load_scratch(folder)
    asked = (addition("uniform", TRAINED, 1, index) for index in range(_MEASURED))
    given = [shares for problem in asked for shares in attention_of_layers(run, problem)]
    return torch.tensor(given).mean(0).tolist()


@torch.inference_mode()
def attention_of_layers(run: ScratchRun, problem: Problem) -> list[list[float]]:
    """`attention_by_distance` in one sum, for each layer."""
    ids_1T, writes_T = tokens(run, problem)
    row = Row.of(run.model, ids_1T)
    is_asked_T = (row.number_BK[0] == 0) | (row.number_BK[0] == 1)
    layers: list[list[float]] = []

    def look(scores: Scores, _: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        at = row.positions_BK
        scores_BHQK = scores.at(at, at).masked_fill(mask == float("-inf"), float("-inf"))
        all_BHQ1 = scores_BHQK.logsumexp(-1, keepdim=True)
        layers.append([])
        for distance in DISTANCES:
            there_BHQK = scores.at(torch.zeros_like(at), torch.full_like(at, distance))
            one_more_BHQK = (there_BHQK - torch.logaddexp(there_BHQK, all_BHQ1)).exp()
            layers[-1].append(float(one_more_BHQK[:, :, writes_T][..., is_asked_T].mean()))
        return scores_BHQK

    with rescored(run.model, look):
        run.model(ids_1T)
    return layers


def attention_to_new_distances(folder: Path, digits: int) -> float:
    """The share of attention that digits at new distances get in sums of `digits` digits."""
    run = load_scratch(folder)
    asked = (addition("uniform", digits, 0, index) for index in range(_MEASURED))
    return float(torch.tensor([share for problem in asked for share in new_in_layers(run, problem)]).mean())


@torch.inference_mode()
def new_in_layers(run: ScratchRun, problem: Problem) -> list[float]:
    """`attention_to_new_distances` in one sum, for each layer."""
    ids_1T, writes_T = tokens(run, problem)
    row, layers = Row.of(run.model, ids_1T), []

    def look(scores: Scores, _: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        scores_BHQK = scores.at(row.positions_BK, row.positions_BK, bias=False) + mask
        new_BHQK = scores_BHQK.softmax(-1) * at_new_distances(row)[:, None]
        layers.append(float(new_BHQK.sum(-1)[:, :, writes_T].mean()))
        return scores_BHQK

    with rescored(run.model, look):
        run.model(ids_1T)
    return layers


def tokens(run: ScratchRun, problem: Problem) -> tuple[torch.Tensor, torch.Tensor]:
    """The tokens of a sum with its answer, (1, T), and which of them write a digit, (T,)."""
    question, answer = run.notation.question(problem), run.notation.answer(problem)
    ids_1T = torch.tensor([run.tokenizer.convert_tokens_to_ids(["<begin>", *question, *answer])])
    place_T = torch.arange(ids_1T.shape[1])
    return ids_1T, (place_T >= len(question)) & (place_T < len(question) + len(answer))


def draw(
    found: Mapping[tuple[str, str], Mapping[int, Estimate]],
    attention: Mapping[str, Sequence[Sequence[float]]],
    path: Path,
) -> None:
    """Draws the models of one layer. On the left is the attention to one more digit by its distance, a line for each
    seed; on the right, exact match by length."""
    setting = next(iter(attention))
    with figures.figure_at(path, (8.6, 3.8)) as figure:
        looks, curves = figure.subplots(1, 2)
        looks.axvspan(-FARTHEST, FARTHEST, color="0.92", lw=0)
        most = int(DISTANCES[-1] / math.tau)  # the fastest pair of RoPE turns by one radian an id
        for turns in range(-most, most + 1):
            label = None if turns else "the digit to write, and whole turns from it"
            looks.axvline(1 + turns * math.tau, color="0.6", lw=0.8, ls=":", label=label)
        for place, seed in enumerate(attention[setting]):
            label = None if place else f"one of {len(attention[setting])} models as trained"
            looks.plot(list(DISTANCES), [100 * share for share in seed], color="0.3", alpha=0.5, lw=1, label=label)
        looks.set(xlabel="places above (grey: seen in training)", ylabel="attention to one more digit (%)")
        curves.axvspan(1, TRAINED, color="0.92", lw=0)
        for color, (change, name) in zip(figures.COLORS, DRAWN.items(), strict=False):
            figures.line_with_band(curves, found[setting, change], color=color, label=name)
        lengths = [length for length in found[setting, "as trained"] if length not in (11, 12, 25)]
        curves.set(xscale="log", ylim=(-0.03, 1.03), xlim=(5, 1.1 * max(lengths)))
        curves.set(xlabel="digits (grey: seen in training)", ylabel="exact match")
        curves.set_xticks(lengths, labels=list(map(str, lengths)))
        curves.minorticks_off()
        figures.legend_below(figure, 2)


if __name__ == "__main__":
    main(sys.argv[1:])
