"""Can the length at which a model fails be predicted from measurements at training length alone?

    python -m experiments.leak-given.run [sums=32] [output=checkpoints]

Two trained one-layer models of the zoo, which are right up to 10 digits, are varied without training: a slope is
subtracted from the attention scores for each place between two digits, and the scores are multiplied by a factor.
Variants that are right at 10 digits fail at different lengths. Reach is the length at which half of the sums are right,
interpolated between those in `LENGTHS`. Predictors are measured on sums of at most ten digits:

    leak attention that the aligned heads give at ten digits to digits that s_k does not need growth leak at ten digits
    minus leak at five extrapolated leak at fifty digits, if the odds of a foreign digit continue to fall with distance
    as they do within ten digits tolerance the leak at which half of the sums of ten digits are wrong, given to the
    aligned heads both extrapolated minus tolerance margin logit of the right digit minus that of the next best; the
    tenth percentile

The predictor is chosen on the variants of one model and tested on those of the other. As a causal test, a variant is
given the leak that it has at fifty digits while it adds ten digits, and the leak that it has at ten digits while it
adds fifty. As a control, each head is also given its own mean leak at that length, the same for all queries.
Measurements are kept in the output folder. Leaves two tables and a figure in results/ beside the runs.
"""

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import torch

from experiments.shared.arguments import own, whole_number
from experiments.shared.kept import Kept, identified
from experiments.shared.publishing import beside_runs
from experiments.shared.sums import drawn
from experiments.shared.variants import with_settings
from lab.drawing import figures
from lab.drawing.tables import NOT_MEASURED, Table, percent
from lab.errors import RunError, exit_cleanly
from lab.models import loading, sources
from lab.numbers.statistics import wilson
from lab.probing import interventions
from lab.probing.addition.alignment import aligned_heads, alignment, destinations, foreign_digits, queries
from lab.probing.addition.positions import NotatedSums, Sums
from lab.probing.bridge import Hook, Subject, bridge
from lab.probing.contrast import NOWHERE
from lab.probing.instruments.attribution import spearman
from lab.probing.interventions import put, take
from lab.progress import quiet_libraries
from lab.text.notation import Notation

SHORT, TRAINED, FAR = 5, 10, 50
LENGTHS = (10, 12, 15, 20, 30, 50, 70, 100)
LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9)
VARIANTS = {
    "zoo/adds-10-without-locality": ((0, 0.02, 0.05, 0.1), (1, 1.25, 2)),
    "zoo/adds-1000": ((1, 0.2, 0.1, 0.05, 0.02, 0), (1, 1.5)),
}
"""Slopes and factors. Predictors are chosen on the first and tested on the second."""


def variant(name: str, slope: float, factor: float) -> Subject:
    """The model with another slope, and with its attention scores multiplied by a factor."""
    run = with_settings(loading.load_scratch(Path(sources.resolve(name))), locality=slope)
    for part, module in run.model.named_modules():
        if part.endswith("self_attn.q_proj"):
            module.weight.data.mul_(factor)  # type: ignore[operator, union-attr]
    assert isinstance(run.notation, Notation)
    return bridge(f"{name}, slope {slope:g}, factor {factor:g}", run.model, NotatedSums(run.notation, run.tokenizer))


def set_leak(sums: Sums, leak: Mapping[tuple[int, int], float]) -> list[Hook]:
    """At every q_k, these heads give a set share of their attention to digits that are not needed
    (`alignment.Destinations.leak`).

    Within these digits, and within all other tokens, proportions stay the same. A head that can attend only to such
    digits, or to no such digit, is unchanged.

    `leak`: shares from 0 to 1 by (layer, head); 0 removes the leak.
    """
    at_BQ, foreign_BQT = queries(sums), foreign_digits(sums)
    by_layer: dict[int, dict[int, float]] = {}
    for (layer, head), share in leak.items():
        by_layer.setdefault(layer, {})[head] = share
    return [interventions.pattern(layer, _leaking(at_BQ, foreign_BQT, heads)) for layer, heads in by_layer.items()]


def _leaking(at_BQ: torch.Tensor, foreign_BQT: torch.Tensor, heads: Mapping[int, float]) -> interventions.Change:
    # B sums, T tokens, Q columns and the end
    def change(pattern_BHTT: torch.Tensor) -> torch.Tensor:
        changed, is_foreign_BQT = pattern_BHTT.clone(), foreign_BQT.to(pattern_BHTT.device)
        for head, share in heads.items():
            seen_BQT = take(changed[:, head], at_BQ)
            leaks_BQ1 = (seen_BQT * is_foreign_BQT).sum(-1, keepdim=True)
            scale_BQT = torch.where(is_foreign_BQT, share / leaks_BQ1, (1 - share) / (1 - leaks_BQ1))
            possible_BQ1 = (leaks_BQ1 > 0) & (leaks_BQ1 < 1)
            new_BQT = torch.where(possible_BQ1, seen_BQT * scale_BQT, seen_BQT)
            changed[:, head] = put(changed[:, head], at_BQ, new_BQT)
        return changed

    return change


@torch.inference_mode()
def exact(subject: Subject, sums: Sums, leak: dict[tuple[int, int], float] | None = None) -> float:
    parts = [sums.part(slice(start, start + 25)) for start in range(0, len(sums), 25)]
    return float(
        torch.cat([part.read(subject.logits(part, set_leak(part, leak or {}))).exact_B for part in parts])
        .float()
        .mean()
    )


def reach(right: dict[int, float]) -> float:
    """The length at which half of the sums are right, interpolated on a logarithmic scale of lengths."""
    for below, above in pairwise(LENGTHS):
        if right[above] < 0.5:
            part = (right[below] - 0.5) / max(1e-9, right[below] - right[above])
            return float(below * (above / below) ** np.clip(part, 0, 1))
    return float(LENGTHS[-1])


@torch.inference_mode()
def odds_by_distance(subject: Subject, sums: Sums, heads: set[tuple[int, int]]) -> dict[int, float]:
    """The odds of a foreign digit, by its place minus k: attention from q_k to one digit of an operand, divided by the
    attention to everything but the operands' foreign digits. Means over the heads."""
    seen: dict[int, list[float]] = {}
    names = {layer: f"blocks.{layer}.attn.hook_pattern" for layer, _ in heads}
    _, found = subject.activations(sums, list(names.values()))
    for layer, head in heads:
        of_query_BKT = take(found[names[layer]][:, head], sums.query_at_BK)
        digits_BKD = torch.stack([of_query_BKT.gather(2, at.clamp(min=0)[:, None].expand(-1, of_query_BKT.shape[1], -1))
                                  for at in (sums.a_at_BK, sums.b_at_BK)])  # fmt: skip
        there_BD = (sums.a_at_BK != NOWHERE) & (sums.b_at_BK != NOWHERE)
        for k in range(TRAINED):
            foreign = [d for d in range(TRAINED) if d - k not in (0, -1)]
            mass = digits_BKD[:, :, k]
            needed_B = 1 - torch.stack([(mass[:, :, d] * there_BD[:, d]).sum(0) for d in foreign]).sum(0)
            for d in foreign:
                share_B = mass[:, :, d].mean(0) / needed_B.clamp(min=1e-6)
                seen.setdefault(d - k, []).extend(share_B[there_BD[:, d]].tolist())
    return {distance: float(np.mean(shares)) for distance, shares in seen.items()}


def extrapolated(odds: dict[int, float], length: int) -> float:
    """The leak at a length, if the logarithm of the odds continues as a straight line with distance on either side."""
    total = 0.0
    for side in (1, -1):
        near = sorted((abs(d), np.log(max(share, 1e-9))) for d, share in odds.items() if d * side > 0)
        distance, level = map(np.array, zip(*near, strict=True))
        slope, start = np.polyfit(distance, level, 1)
        far = np.arange(1 if side > 0 else 2, length)
        # digits at a distance are as many below as above: place k has k places below it and length - 1 - k above
        total += float((2 * np.exp(start + min(slope, 0.0) * far) * (length - far) / length).sum())
    return total / (1 + total)


def measure(name: str, slope: float, factor: float, count: int) -> dict[str, float]:
    """The reach of a variant, its predictors, and its sums with given leaks. If the model gets less than 0.9 right at
    training length, or if no head is aligned, only the share that is right."""
    subject = variant(name, slope, factor)
    sums = {length: drawn(subject, length, 0, count) for length in (SHORT, *LENGTHS)}
    right = {length: exact(subject, sums[length]) for length in LENGTHS}
    heads = {(one.layer, one.head) for one in aligned_heads(alignment(subject, {TRAINED: sums[TRAINED]}))}
    if right[TRAINED] < 0.9 or not heads:
        return {"right": right[TRAINED]}
    leaks = destinations(subject, {length: sums[length] for length in (SHORT, TRAINED, FAR)}).leak
    by_head = {
        n: {h: float(leaks.at(layer=h[0], head=h[1], length=n).value) for h in heads} for n in (SHORT, TRAINED, FAR)
    }
    mean = {n: float(np.mean(list(levels.values()))) for n, levels in by_head.items()}
    dose = [
        exact(subject, sums[TRAINED], {h: max(level, own) for h, own in by_head[TRAINED].items()}) for level in LEVELS
    ]
    tolerance = next((level for level, share in zip(LEVELS, dose, strict=True) if share < 0.5), 1.0)
    far = extrapolated(odds_by_distance(subject, sums[TRAINED], heads), FAR)
    with torch.inference_mode():
        two_BT2 = subject.logits(sums[TRAINED]).float().topk(2, dim=-1).values
        margin_BK = (two_BT2[..., 0] - two_BT2[..., 1]).gather(1, sums[TRAINED].query_at_BK.clamp(min=0))
    return {
        "right": right[TRAINED], "reach": reach(right), "leak": mean[TRAINED], "growth": mean[TRAINED] - mean[SHORT],
        "extrapolated": far, "tolerance": tolerance, "both": far - tolerance,
        "margin": float(margin_BK[sums[TRAINED].has_digit_BK].quantile(0.1)),
        f"leak at {FAR}": mean[FAR], f"exact at {FAR}": right[FAR],
        "given": exact(subject, sums[TRAINED], by_head[FAR]), "reset": exact(subject, sums[FAR], by_head[TRAINED]),
        "own": exact(subject, sums[TRAINED], by_head[TRAINED]),
        f"own at {FAR}": exact(subject, sums[FAR], by_head[FAR]),
        "no aligned leak": exact(subject, sums[FAR], dict.fromkeys(heads, 0.0)),
    }  # fmt: skip


PREDICTORS = {"leak": -1, "growth": -1, "extrapolated": -1, "tolerance": 1, "both": -1, "margin": 1}
"""The predictors, each with the sign of its expected correlation with reach."""


def correlation(rows: list[dict[str, float]], name: str) -> float:
    predicted, reached = (np.array([row[key] for row in rows]) for key in (name, "reach"))
    return float(spearman(PREDICTORS[name] * predicted, reached))


def interval(rows: list[dict[str, float]], name: str) -> str:
    """The rank correlation of a predictor with reach, with a bootstrap interval over variants, unless they are few."""
    if len(rows) < 5:
        return f"{correlation(rows, name):.2f}" if len(rows) > 2 else NOT_MEASURED
    drawn = np.random.default_rng(0).integers(len(rows), size=(2000, len(rows)))
    again = [correlation([rows[place] for place in places], name) for places in drawn]
    low, high = np.nanquantile(again, [0.025, 0.975])
    return f"{correlation(rows, name):.2f} ({low:.2f} to {high:.2f})"


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    quiet_libraries()
    results = beside_runs(arguments)
    given = own(arguments, "sums", "output")
    count, kept = whole_number(given, "sums", 32), Kept(Path(given.get("output", "checkpoints")) / "leak_law.json")
    found: dict[str, dict[str, dict[str, float]]] = {}
    for name, (slopes, factors) in VARIANTS.items():
        for slope, factor in product(slopes, factors):
            label = f"slope {slope:g}, factor {factor:g}"
            measured = partial(measure, name, slope, factor, count)
            found.setdefault(name, {})[label] = kept.once(f"{identified(name)}, {label}, {count} sums", measured, str)
    kinds = {name: [row for row in rows.values() if "reach" in row] for name, rows in found.items()}
    first = next(iter(kinds.values()))
    if len(first) < 2:
        raise RunError(f"sums={count}: only {len(first)} variants of {next(iter(kinds))} add {TRAINED} digits")
    chosen = max(PREDICTORS, key=lambda one: correlation(first, one))
    rows = [
        (f"{one}, chosen" if one == chosen else one, *(interval(some, one) for some in kinds.values()))
        for one in PREDICTORS
    ]
    names = [f"{name} ({len(some)} variants)" for name, some in kinds.items()]
    results.show(Table("Rank correlation of predictors with reach (95 %)", ("predictor", *names), rows, 1), "leak_law")
    results.show(leaks_given(found, count), "leak_given")
    draw(kinds, chosen, results.file("leak_law.png"))


def leaks_given(found: Mapping[str, Mapping[str, Mapping[str, float]]], count: int) -> Table:
    """Exact match of each variant with factor 1, as it is and with other leaks."""
    shares = {"exact at 10": "right", "10, set to its own mean": "own", "10, given the leak of 50": "given",
              "exact at 50": f"exact at {FAR}", "50, set to its own mean": f"own at {FAR}",
              "50, reset to the leak of 10": "reset", "50, without the leak": "no aligned leak"}  # fmt: skip
    rows = []
    for name, some in found.items():
        for label, row in some.items():
            if "reach" in row and label.endswith("factor 1"):
                cells = [percent(wilson(round(row[key] * count), count)) for key in shares.values()]
                leaks = [f"{100 * row[key]:.0f}" for key in ("leak", f"leak at {FAR}")]
                rows.append((name, label, f"{row['reach']:.0f}", *leaks, *cells))
    columns = ("model", "variant", "reach", "leak at 10, %", "leak at 50, %", *shares)
    return Table("Leaks given and taken (exact match, %, 95 %)", columns, rows, 3)


def draw(kinds: Mapping[str, list[dict[str, float]]], chosen: str, path: Path) -> None:
    with figures.figure_at(path, figsize=(4.6, 3.6)) as figure:
        axes = figure.subplots()
        for color, (name, some) in zip(figures.COLORS, kinds.items(), strict=False):
            axes.plot([row[chosen] for row in some], [row["reach"] for row in some], "o", ms=4, color=color, label=name)
        axes.set(xlabel=f"{chosen}, measured at {TRAINED} digits", ylabel="reach in digits", yscale="log")
        axes.set_title("Reach of variants of two models")
        axes.legend()


if __name__ == "__main__":
    main(sys.argv[1:])
