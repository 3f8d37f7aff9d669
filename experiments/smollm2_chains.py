"""What does the head of tuned SmolLM2 that brings carries say, if it is given the digits of other sums? And does the
model know a carry that passes through a nine?

    python -m experiments.smollm2_chains [seeds=0,1,2] [pairs=100] [output=checkpoints] [table=smollm2_chains]
        [key=value ...]

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

Measurements are kept beside each model and are not repeated. Leaves tables and a figure in results/ beside the runs.
"""

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from experiments.shared.arguments import own_and_others, whole_number, whole_numbers
from experiments.shared.carry_by_total import (
    BATCH,
    DECIDES,
    HALF_WAY,
    STREAM,
    TENS,
    TOTALS,
    Curves,
    by_total,
    right_digits,
    right_table,
    totals_table,
)
from experiments.shared.estimates import estimate, estimated, shown
from experiments.shared.heads import discovery
from experiments.shared.kept import Kept
from experiments.shared.publishing import beside_runs
from experiments.shared.showing import looks
from experiments.shared.training import trained
from lab.config.finetuning import FinetuneConfig
from lab.config.loading import load
from lab.drawing import figures
from lab.drawing.tables import Entry, Table
from lab.errors import exit_cleanly
from lab.probing.addition import carries
from lab.probing.addition.carries import CARRY_DIRECTIONS
from lab.probing.addition.pairs import Pairs, same_carry
from lab.probing.answered import Donor
from lab.probing.bridge import Subject, open_model
from lab.probing.components import Component
from lab.probing.contrast import EVERYWHERE
from lab.probing.instruments import patching
from lab.probing.instruments.patching import Patch
from lab.progress import quiet_libraries

ROOT = Path(__file__).parents[1]
CONFIG = ROOT / "configs" / "smollm2_sums.yaml"
DISCOVERY, SCREENED = 24, 12
MODEL = "tuned SmolLM2-135M"
OTHER, SAME = "other carry", "same carry"


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    quiet_libraries()
    results = beside_runs(arguments)
    given, changes = own_and_others(arguments, "seeds", "pairs", "output", "table")
    output, count = given.get("output", "checkpoints"), whole_number(given, "pairs", 100)
    name, found = given.get("table", "smollm2_chains"), {}
    for seed in whole_numbers(given, "seeds", "0,1,2"):
        own = [f"name=smollm2_sums_{seed}", f"seed={seed}", f"output={output}", "resume=true"]
        found[seed] = measured(trained(load(FinetuneConfig, CONFIG, [*changes, *own])), count)
        results.show(effects_table(found), name)
        right = {str(seed): one["right"] for seed, one in found.items()}
        results.show(right_table(f"Digits of the hundreds that {MODEL} gets right", "seed", right), f"{name}_right")
        totals = {str(seed): one["totals"] for seed, one in found.items()}
        title = f"How far the answer of {MODEL} goes from no carry to carry"
        results.show(totals_table(title, "seed", totals), f"{name}_totals")
        drawn = {f"seed {seed}": curves for seed, curves in totals.items()}
        draw_totals(drawn, "What the answer makes of an output from a sum with other tens", results.file(f"{name}.png"))


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
        for name, donor in {OTHER: None, SAME: carries.donor(partial(same_carry, column=TENS, seed=3))}.items()
    }
    totals = once(f"totals on one scale, {head}", partial(by_total, subject, [head]))
    return {"right": right, "head": head, "effects": effects, "totals": totals}


def patched(subject: Subject, pairs: Pairs, head: str, donor: Donor | None) -> dict[str, list[float]]:
    """The effect of the head, with its interval, for each direction of the carry."""
    patch = Patch((Component.named(head),), EVERYWHERE)
    effect = patching.patch(subject, pairs, [patch], "effect", {"patch": [head]}, BATCH, donor).effect
    return {way: estimate(effect.at(patch=head, carry=way)) for way in CARRY_DIRECTIONS}


def effects_table(found: Mapping[int, dict[str, Any]]) -> Table:
    lines: list[tuple[Entry, ...]] = []
    for seed, one in found.items():
        cells = [shown(estimated(known[way])) for known in one["effects"].values() for way in CARRY_DIRECTIONS]
        lines.append((str(seed), one["head"], *cells))
    title = f"How far a head's output from a donor moves the answer towards the other carry, {MODEL} (%, 95 %)"
    return Table(
        title, ("seed", "head", *(f"{kind}, {way}" for kind in (OTHER, SAME) for way in CARRY_DIRECTIONS)), lines, 2
    )


def draw_totals(found: Mapping[str, Curves], title: str, path: Path) -> None:
    """A panel for each model, a line for each part and each carry from the ones."""
    with figures.figure_at(path, (2.8 * max(2, len(found)), 3)) as figure:
        panels: Any = np.atleast_1d(figure.subplots(1, len(found), sharey=True))
        for axes, (name, curves) in zip(panels, found.items(), strict=True):
            lines = [
                ("whole stream" if part == STREAM else part, carry, points)
                for part, by_carry in curves.items()
                if part != HALF_WAY
                for carry, points in by_carry.items()
            ]
            for look, (part, carry, points) in zip(looks(), lines, strict=False):
                named = f"{part}, {'with' if carry == '1' else 'without'} a carry from the ones"
                curve = {int(total): estimated(point) for total, point in points.items()}
                figures.line_with_band(axes, curve, label=named, **look)
            axes.axvline(9.5, color="gray", linewidth=0.6, label="from here on, the tens carry")
            axes.set(title=name, xlabel="total of the donor's tens", xticks=range(0, TOTALS[-1] + 1, 3))
        panels[0].set_ylabel("from no carry (0) to carry (1)")
        figures.legend_below(figure, 2)
        figures.headed(figure, title)


if __name__ == "__main__":
    main(sys.argv[1:])
