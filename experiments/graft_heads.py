"""Which heads bring the carry in a model with the graft, and do the same heads bring it in numbers of forty digits?

    python experiments/graft_heads.py RUN[,RUN ...] [pairs=48] [long=40] [long_pairs=24] [publish=true] [output=FOLDER]

RUN is a run directory of experiments/graft.py; give one for each seed. At q_k, the token that writes digit k, a head
can be patched from a sum that differs in the carry into k alone (lab/probing/contrast.py).

    discovery    for the columns 1 and 2 of sums of three digits, attributions rank all heads on 24 pairs, and the 24
                 largest are patched
    test         on other pairs, the six heads with the largest mean effect are patched one by one and together, and so
                 are six other heads of the same layers: in column 1 of three digits, and in the middle of long numbers
    looks        the attention that each of the six pays to the digits of places k and k-1, on the test pairs

Leaves a table. Measurements are kept beside each run and are not repeated.
"""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from shared.arguments import own_and_others
from shared.heads import random_groups
from shared.kept import Kept
from shared.publishing import Results, take_results
from shared.sums import drawn, shown

from lab.drawing.tables import Entry, Table, percent
from lab.numbers.statistics import Estimate, wilson
from lab.probing.bridge import Subject, open_model
from lab.probing.components import Component
from lab.probing.contrast import WAYS, Contrast
from lab.probing.instruments import attribution, patching
from lab.probing.instruments.patching import Patch
from lab.probing.interventions import take
from lab.probing.pairs import Pairs, carry_only
from lab.progress import quiet_libraries

ROOT = Path(__file__).parents[1]
PROMPT = "{a} + {b} ="
SHORT = 3
"""Digits of the sums on which heads are discovered."""
DISCOVERY, SCREENED, TESTED = 24, 24, 6
LOOKED_AT = ("a_k", "b_k", "a_k-1", "b_k-1")
HERE = "q_k"


def main(arguments: Sequence[str]) -> None:
    quiet_libraries()
    results, rest = take_results(arguments, ROOT / "experiments" / "results")
    given, runs = own_and_others(rest, "pairs", "long", "long_pairs", "output")
    count, fewer = int(given.get("pairs", 48)), int(given.get("long_pairs", 24))
    digits = int(given.get("long", 40))
    found: dict[str, dict[str, Any]] = {}
    for run in [Path(run) for part in runs for run in part.split(",")]:
        found[run.name] = measured(run, {SHORT: (1, count), digits: (digits // 2, fewer)})
        show(found, results)


def measured(run: Path, asked: dict[int, tuple[int, int]]) -> dict[str, Any]:
    """All measurements of a model. `asked`: for each number of digits, the column into which something is carried, and
    the number of test pairs."""
    kept, subject = Kept(run / "graft_heads.json"), open_model(str(run), PROMPT)
    ranked = [
        kept.once(f"discovery {column}", partial(discovery, subject, carry_only(SHORT, column - 1, DISCOVERY, seed=1)))
        for column in range(1, SHORT)
    ]
    heads = tuple(Component.named(name) for name in strongest(ranked))
    (others,) = random_groups(subject, heads, 1, seed=0)
    for length, (column, count) in asked.items():
        kept.once(f"right {length}", partial(right, subject, length, count))
        pairs = carry_only(length, column - 1, count, seed=2)
        kept.once(f"test {length}", partial(tested, subject, pairs, heads, others))
        kept.once(f"looks {length}", partial(looks, subject, pairs, heads))
    return kept.known


def discovery(subject: Subject, pairs: Pairs) -> dict[str, float]:
    """The effect at q_k of the heads that attribution ranks first, the mean of both directions of the carry."""
    guessed_BN = attribution.attributions(Contrast(subject, pairs), (HERE,))[:, : subject.layers * subject.heads]
    first = np.argsort(-np.abs(guessed_BN).mean(0))[:SCREENED]
    heads = [Component("head", int(one) // subject.heads, int(one) % subject.heads) for one in first]
    return dict(zip(map(str, heads), effects(subject, pairs, [(head,) for head in heads]).mean(0), strict=True))


def effects(subject: Subject, pairs: Pairs, groups: Sequence[tuple[Component, ...]]) -> np.ndarray:
    """The effect of each group, patched together at q_k, for both directions of the carry: (2, groups)."""
    patches = [Patch(group, HERE) for group in groups]
    axes = {"patch": [str(patch) for patch in patches]}
    return patching.patch(subject, pairs, patches, "effect", axes, 96).effect.value.astype(float)


def strongest(ranked: Sequence[dict[str, float]]) -> list[str]:
    """The heads with the largest mean effect over the columns; heads that were not patched in a column count as 0."""
    names = {name for found in ranked for name in found}
    return sorted(names, key=lambda name: -sum(found.get(name, 0.0) for found in ranked))[:TESTED]


def right(subject: Subject, length: int, count: int) -> list[int]:
    """How many of the sums of this length are right, and of how many."""
    sums = drawn(subject, length, 0, count)
    with torch.inference_mode():
        return [int(sums.read(subject.logits(sums)).exact_B.sum()), count]


def tested(
    subject: Subject, pairs: Pairs, heads: tuple[Component, ...], others: tuple[Component, ...]
) -> dict[str, list[list[float]]]:
    """The effects of the heads, of all of them together, and of their controls: value, low, high and n for each
    direction of the carry."""
    groups = {**{str(head): (head,) for head in heads}, "together": heads, "controls": others}
    patches = {name: Patch(group, HERE) for name, group in groups.items()}
    effect = patching.patch(subject, pairs, list(patches.values()), "effect", {"patch": list(patches)}, 96).effect
    return {
        name: [
            [float(one.value), float(one.low), float(one.high), int(one.n)]
            for one in (effect.at(patch=name, carry=way) for way in WAYS)
        ]
        for name in patches
    }


@torch.inference_mode()
def looks(subject: Subject, pairs: Pairs, heads: Sequence[Component]) -> dict[str, dict[str, float]]:
    """The mean share of each head's attention at q_k that goes to each of LOOKED_AT, and to the token itself."""
    contrast = Contrast(subject, pairs)
    names = {head: f"blocks.{head.layer}.attn.hook_pattern" for head in heads}
    _, patterns = subject.activations(contrast.base, sorted(set(names.values())))
    at_B1 = contrast.base.query_at_BK[:, contrast.column : contrast.column + 1]
    found: dict[str, dict[str, float]] = {}
    for head, name in names.items():
        seen_BT = take(patterns[name][:, head.head], at_B1)[:, 0].float().cpu()
        found[str(head)] = {
            place: float((seen_BT * contrast.at_BT(place)[:, : seen_BT.shape[1]]).sum(1).mean())
            for place in (*LOOKED_AT, HERE)
        }
    return found


def show(found: dict[str, dict[str, Any]], results: Results) -> None:
    lengths = [int(name.split()[1]) for name in next(iter(found.values())) if name.startswith("test")]
    lines: list[tuple[Entry, ...]] = []
    for run, known in found.items():
        for name in known[f"test {SHORT}"]:
            cells = [shown(smaller(known[f"test {length}"][name])) for length in lengths]
            look = known[f"looks {SHORT}"].get(name)
            most = max(look, key=lambda place: look[place]) if look else ""
            lines.append((run, name, *cells, f"{most} {100 * look[most]:.0f} %" if look else ""))
        able = [percent(wilson(*known[f"right {length}"])) for length in lengths]
        lines.append((run, "sums that are right", *able, ""))
    title = "The share of a carry that heads bring to the token that writes a digit, % (95 %), the smaller of both ways"
    columns = ("run", "heads", *(f"{length} digits" for length in lengths), f"looks most at ({SHORT} digits)")
    results.show(Table(title, columns, lines, 2), "graft_heads")


def smaller(ways: Sequence[Sequence[float]]) -> Estimate:
    value, low, high, n = min(ways, key=lambda one: one[0])
    return Estimate(value, low, high, int(n))


if __name__ == "__main__":
    main(sys.argv[1:])
