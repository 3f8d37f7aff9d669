"""What does the head of tuned SmolLM2 that brings carries say, if it is given the digits of other sums? And does the
model know a carry that passes through a nine?

    python experiments/smollm2_chains.py [seeds=0,1,2] [pairs=100] [output=checkpoints] [table=smollm2_chains]
                                         [publish=true] [key=value ...]

Tunes SmolLM2-135M on sums of 1-4 digits by configs/smollm2_sums.yaml, once for each seed. For each model, on sums of
three digits, where the digit of the hundreds is predicted:

    right      how often this digit is right, without a carry and with one: if the tens alone decide, and if the tens
               add up to nine, so that the ones decide (`pairs.through_nine` of lab/probing)
    discovery  attributions rank all heads and MLPs on 24 pairs whose tens decide, and the twelve largest are patched
    test       on other pairs, the effect of the strongest head, with the output of the other sum, and with that of a
               donor that has the same carry and other tens (`pairs.same_carry`)
    totals     the strongest head gets its output from a sum whose tens have another total, 0 to 18, and everything else
               stays the same; how far does the answer move from "no carry" to "carry"? Sums with and without a carry
               from the ones are measured separately. For comparison, the same is done with the whole stream at the same
               token, which contains everything that the model computes

Measurements are kept beside each model and are not repeated. Leaves tables and a figure in results/ beside the runs, or
in experiments/results/ with publish=true.
"""

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from shared.arguments import own_and_others, whole_number, whole_numbers
from shared.heads import discovery
from shared.kept import Kept
from shared.publishing import take_results
from shared.showing import looks
from shared.sums import estimate, estimated, shown
from shared.training import trained

from lab.config.finetuning import FinetuneConfig
from lab.config.loading import load
from lab.drawing import figures
from lab.drawing.tables import Entry, Table, percent
from lab.errors import exit_cleanly
from lab.numbers.columns import Columns
from lab.numbers.statistics import wilson
from lab.probing.bridge import Subject, open_model
from lab.probing.components import Component
from lab.probing.contrast import EVERYWHERE, WAYS, Contrast, Runs
from lab.probing.instruments import patching
from lab.probing.instruments.patching import Donor, Patch, replacing
from lab.probing.interventions import said_digits
from lab.probing.measured import Measured
from lab.probing.pairs import Pairs, carry_only, same_carry, through_nine, with_totals
from lab.probing.positions import batches
from lab.progress import quiet_libraries

ROOT = Path(__file__).parents[1]
CONFIG = ROOT / "configs" / "smollm2_sums.yaml"
LENGTH, TENS, HUNDREDS = 3, 1, 2
DISCOVERY, SCREENED = 24, 12
TOTALS = (0, 2, 4, 6, 7, 8, 9, 10, 11, 12, 14, 16, 18)
SHOWN = (0, 4, 8, 9, 10, 14, 18)
"""Totals in the table; the figure has all."""
CURVE_PAIRS = 60
"""Pairs that get each total."""
MODEL = "tuned SmolLM2-135M"
BATCH = 128
"""Rows of a forward pass."""
OTHER, SAME = "other carry", "same carry"
DECIDES = {"the tens": partial(carry_only, LENGTH, TENS), "the ones": partial(through_nine, LENGTH, TENS - 1)}
"""Which place decides about the carry into the hundreds, and how pairs are drawn for it (count, seed)."""


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    quiet_libraries()
    results, arguments = take_results(arguments, ROOT / "experiments" / "results")
    given, changes = own_and_others(arguments, "seeds", "pairs", "output", "table")
    output, count = given.get("output", "checkpoints"), whole_number(given, "pairs", 100)
    name, found = given.get("table", "smollm2_chains"), {}
    for seed in whole_numbers(given, "seeds", "0,1,2"):
        own = [f"name=smollm2_sums_{seed}", f"seed={seed}", f"output={output}", "resume=true"]
        found[seed] = measured(trained(load(FinetuneConfig, CONFIG, [*changes, *own])), count)
        results.show(effects_table(found), name)
        results.show(right_table(found), f"{name}_right")
        results.show(totals_table(found), f"{name}_totals")
        draw(found, results.file(f"{name}.png"))


def measured(run: Path, count: int) -> dict[str, Any]:
    """All measurements of a model. `count`: the number of pairs in each test."""
    once, subject = Kept(run / "chains.json").once, open_model(str(run))
    right = {
        part: once(f"right, {count} pairs, {part}", partial(right_digits, subject, pairs(count, 2)))
        for part, pairs in DECIDES.items()
    }
    tens = DECIDES["the tens"]
    ranked = once("discovery", partial(discovery, subject, tens(DISCOVERY, 1), SCREENED))
    head = max(ranked, key=lambda name: ranked[name])
    effects = {
        name: once(f"{name}, {count} pairs, {head}", partial(patched, subject, tens(count, 2), head, donor))
        for name, donor in {OTHER: None, SAME: partial(same_carry, column=TENS, seed=3)}.items()
    }
    totals = once(f"totals on one scale, {head}", partial(by_total, subject, head, tens(CURVE_PAIRS, 2)))
    return {"right": right, "head": head, "effects": effects, "totals": totals}


@torch.inference_mode()
def right_digits(subject: Subject, pairs: Pairs) -> dict[str, list[int]]:
    """How many digits of the hundreds are right, and of how many, without a carry and with one."""
    found = {}
    for carry, side in (("without", pairs.base), ("with", pairs.source)):
        sums = subject.sums(side)
        said_B = said_digits(subject, sums, HUNDREDS, lambda rows: [])
        found[carry] = [int((said_B == sums.columns.sum[:, HUNDREDS]).sum()), len(sums)]
    return found


def patched(subject: Subject, pairs: Pairs, head: str, donor: Donor | None) -> dict[str, list[float]]:
    """The effect of the head, with its interval, for each direction of the carry."""
    patch = Patch((Component.named(head),), EVERYWHERE)
    effect = patching.patch(subject, pairs, [patch], "effect", {"patch": [head]}, BATCH, donor).effect
    return {way: estimate(effect.at(patch=head, carry=way)) for way in WAYS}


def by_total(subject: Subject, head: str, pairs: Pairs) -> dict[str, dict[str, dict[str, list[float]]]]:
    """For the head and for the whole stream after the last layer, and for the carry from the ones: how far the answer
    goes from "no carry" (0) to "carry" (1) for each total of the donor's tens; value, low, high and n of each. A pair
    counts once, in both directions."""
    contrast = Contrast.able(subject, pairs, BATCH)
    parts = (Component.named(head), Component("post", subject.layers - 1))
    margins_BTP = np.concatenate([given_totals(contrast, rows, parts) for rows in batches(len(contrast), BATCH)])
    # a margin is for the source's digit, which is that of "carry" only if the base has none
    without_B = np.where(contrast.way_B == 0, contrast.corrupt_B, -contrast.clean_B)
    towards_BTP = margins_BTP * np.where(contrast.way_B == 0, 1, -1)[:, None, None]
    moved_NTP = (towards_BTP - without_B.mean()).reshape(2, -1, *towards_BTP.shape[1:]).mean(0)
    gap_N = np.full(len(moved_NTP), (contrast.clean_B - contrast.corrupt_B).mean())
    from_ones_N = Columns.of(contrast.base.numbers).carry[: len(gap_N), TENS]
    found: dict[str, dict[str, dict[str, list[float]]]] = {head: {}, "stream": {}}
    for place, name in enumerate(found):
        for carry in (0, 1):
            rows = from_ones_N == carry
            share = Measured.ratio("carried", {"total": TOTALS}, moved_NTP[rows, :, place], gap_N[rows])
            found[name][str(carry)] = {str(total): estimate(share.at(total=total)) for total in TOTALS}
    return found


@torch.inference_mode()
def given_totals(contrast: Contrast, rows: slice, parts: Sequence[Component]) -> np.ndarray:
    """The margins (B, totals, parts) of some of the bases, if each part alone comes from a donor with another total."""
    subject, runs = contrast.subject, Runs(contrast, rows, [], [])
    at_CBT = torch.stack([contrast.at_BT("q_k")[rows]] * len(parts))
    layers, found = range(min(part.layer for part in parts), subject.layers), []
    for total in TOTALS:
        donors = contrast.donors(with_totals(contrast.base.numbers, TENS, [total] * len(contrast), seed=total))
        _, given = subject.activations(donors.part(rows), [part.hook_point for part in parts])
        hooks = replacing([(part,) for part in parts], given, at_CBT)
        found.append(runs.again(layers, hooks, len(parts)).T)
    return torch.stack(found, 1).cpu().numpy()


def effects_table(found: Mapping[int, dict[str, Any]]) -> Table:
    lines: list[tuple[Entry, ...]] = []
    for seed, one in found.items():
        cells = [shown(estimated(known[way])) for known in one["effects"].values() for way in WAYS]
        lines.append((str(seed), one["head"], *cells))
    title = f"How far a head's output from a donor moves the answer towards the other carry, {MODEL} (%, 95 %)"
    return Table(title, ("seed", "head", *(f"{kind}, {way}" for kind in (OTHER, SAME) for way in WAYS)), lines, 2)


def right_table(found: Mapping[int, dict[str, Any]]) -> Table:
    lines: list[tuple[Entry, ...]] = []
    for seed, one in found.items():
        lines.append(
            (str(seed), *(percent(wilson(*known)) for part in one["right"].values() for known in part.values()))
        )
    title = f"Digits of the hundreds that {MODEL} gets right, by what decides about the carry into them (%, 95 %)"
    columns = [f"{part}, {carry} a carry" for part in DECIDES for carry in ("without", "with")]
    return Table(title, ("seed", *columns), lines, 1)


def totals_table(found: Mapping[int, dict[str, Any]]) -> Table:
    lines: list[tuple[Entry, ...]] = []
    for seed, one in found.items():
        for part, curves in one["totals"].items():
            for carry, points in curves.items():
                lines.append((str(seed), part, carry, *(shown(estimated(points[str(total)])) for total in SHOWN)))
    title = f"How far the answer of {MODEL} goes from no carry to carry, by the total of the donor's tens (%, 95 %)"
    return Table(title, ("seed", "part", "carry from the ones", *map(str, SHOWN)), lines, 3)


def draw(found: Mapping[int, dict[str, Any]], path: Path) -> None:
    """A panel for each seed, a line for each part and each carry from the ones."""
    with figures.figure_at(path, (2.8 * max(2, len(found)), 3)) as figure:
        panels = np.atleast_1d(figure.subplots(1, len(found), sharey=True))
        for axes, (seed, one) in zip(panels, found.items(), strict=True):
            lines = [(part, carry, points) for part, found in one["totals"].items() for carry, points in found.items()]
            for look, (part, carry, points) in zip(looks(), lines, strict=False):
                named = f"{part}, {'with' if carry == '1' else 'without'} a carry from the ones"
                curve = {int(total): estimated(point) for total, point in points.items()}
                figures.line_with_band(axes, curve, label=named, **look)
            axes.axvline(9.5, color="gray", linewidth=0.6)
            axes.set(title=f"seed {seed}", xlabel="total of the donor's tens")
        panels[0].set_ylabel("from no carry (0) to carry (1)")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize="small")
        figures.headed(figure, "What the answer makes of a head's output from a sum with other tens")


if __name__ == "__main__":
    main(sys.argv[1:])
