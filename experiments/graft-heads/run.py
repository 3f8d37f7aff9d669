"""Which heads bring the carry in a model with the graft, and do the same heads bring it in numbers of forty digits?

    python -m experiments.graft-heads.run RUN[,RUN ...] [pairs=48] [long=40] [long_pairs=24] [output=FOLDER]

RUN is a run directory of experiments/graft.py; give one for each seed. At q_k, the token that writes digit k, a head is
patched from a sum that differs only in the carry into place k (lab/probing/answered.py).

    discovery    for the columns 1 and 2 of sums of three digits, attributions rank all heads on 24 pairs, and the 24
                 largest are patched
    test         on other pairs, the six heads with the largest mean effect are patched one by one and together, and six
                 other heads of the same layers together: in column 1 of three digits, and in the middle of long numbers
    looks        the attention that each of the six pays to the digits of places k and k-1, on the test pairs: after
                 tuning, and before it, with adapters that do nothing
    contents     whether the first of the six holds the carry or the digits that make it, on other sums of three digits
                 (lab/probing/addition/head_contents.py), and what its carry direction alone brings
    bias         how much more a head is biased to the digits of one place, k or k-1, than to those of the other places
                 that it sees (lab/parts/same_place.py): the heads with the largest such bias

Leaves three tables and a figure. Measurements are kept beside each run and are not repeated, not even with other
numbers of pairs.
"""

import shutil
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from experiments.shared.arguments import own_and_listed, whole_number
from experiments.shared.estimates import estimate, estimated, shown
from experiments.shared.heads import random_groups, strongest
from experiments.shared.kept import Kept
from experiments.shared.publishing import Results, beside_runs
from experiments.shared.sums import drawn
from lab.drawing import figures
from lab.drawing.tables import Entry, Table, percent
from lab.errors import exit_cleanly
from lab.numbers.statistics import Estimate, wilson
from lab.probing.addition import head_contents
from lab.probing.addition.carries import CARRY_DIRECTIONS
from lab.probing.addition.pairs import Pairs, carry_only
from lab.probing.answered import Answered
from lab.probing.bridge import Subject, open_model
from lab.probing.components import Component
from lab.probing.instruments import attribution, patching
from lab.probing.instruments.patching import Patch
from lab.probing.interventions import take
from lab.probing.measured import Measured
from lab.progress import quiet_libraries

PROMPT = "{a} + {b} = "
SHORT = 3
"""Digits of the sums on which heads are discovered."""
DISCOVERY, SCREENED, TESTED = 24, 24, 6
LOOKED_AT = ("a_k", "b_k", "a_k-1", "b_k-1")
READ = 400
"""Sums on which the direction of a head is learned, and others on which its contents are read."""
HERE = "q_k"


@exit_cleanly
def main(arguments: Sequence[str]) -> None:
    quiet_libraries()
    results = beside_runs(arguments)
    given, runs = own_and_listed(arguments, "runs of experiments/graft.py", "pairs", "long", "long_pairs", "output")
    count, fewer = whole_number(given, "pairs", 48), whole_number(given, "long_pairs", 24)
    digits = whole_number(given, "long", 40)
    found: dict[str, dict[str, Any]] = {}
    folders = [Path(run) for run in runs]
    show_biases(np.stack([biases(run) for run in folders]), results)
    for run in folders:
        found[run.name] = measured(run, {SHORT: (1, count), digits: (digits // 2, fewer)})
        show(found, results)
        show_contents(found, results)


def measured(run: Path, asked: dict[int, tuple[int, int]]) -> dict[str, Any]:
    """All measurements of a model. `asked`: for each number of digits, the column into which something is carried, and
    the number of test pairs."""
    kept, subject = Kept(run / "graft_heads.json"), open_model(str(run), PROMPT)
    ranked = [
        kept.once(f"discovery {column}", partial(discovery, subject, carry_only(SHORT, column - 1, DISCOVERY, seed=1)))
        for column in range(1, SHORT)
    ]
    heads = tuple(Component.named(name) for name in strongest(ranked, TESTED))
    (others,) = random_groups(subject, heads, 1)
    for length, (column, count) in asked.items():
        kept.once(f"right {length}", partial(right, subject, length, count))
        pairs = carry_only(length, column - 1, count, seed=2)
        kept.once(f"test {length}", partial(tested, subject, pairs, heads, others))
        kept.once(f"looks {length}", partial(looks, subject, pairs, heads))
    column, count = asked[SHORT]
    pairs = carry_only(SHORT, column - 1, count, seed=2)
    kept.once("looks before tuning", lambda: looks(before_tuning(run), pairs, heads))
    kept.once("contents", partial(contents, subject, pairs, heads[0]))
    return kept.known


def before_tuning(run: Path) -> Subject:
    """The model with the graft, but with adapters that change nothing, and without the learned bias to places."""
    with TemporaryDirectory() as folder:
        copied = Path(shutil.copytree(run, folder, dirs_exist_ok=True))
        weights = load_file(file := copied / "model" / "adapter_model.safetensors")
        save_file({name: weight * ("lora_A" in name) for name, weight in weights.items()}, file)
        return open_model(folder, PROMPT)


def discovery(subject: Subject, pairs: Pairs) -> dict[str, float]:
    """The effect at q_k of the heads that attribution ranks first, the mean of both directions of the carry."""
    guessed_BN = attribution.attributions(Answered(subject, pairs), (HERE,))[:, : subject.layers * subject.heads]
    first = np.argsort(-np.abs(guessed_BN).mean(0))[:SCREENED]
    heads = [Component("head", int(one) // subject.heads, int(one) % subject.heads) for one in first]
    found = effects(subject, pairs, {str(head): (head,) for head in heads})
    return {str(head): float(found.at(patch=str(head)).value.mean()) for head in heads}


def effects(subject: Subject, pairs: Pairs, groups: Mapping[str, tuple[Component, ...]]) -> Measured:
    """The effect of each group, patched together at q_k; axes (carry, patch)."""
    patches = [Patch(group, HERE) for group in groups.values()]
    return patching.patch(subject, pairs, patches, "effect", {"patch": list(groups)}, 96).effect


def right(subject: Subject, length: int, count: int) -> list[int]:
    """How many sums of this length are right, and how many were asked."""
    sums = drawn(subject, length, 0, count)
    with torch.inference_mode():
        return [int(sums.read(subject.logits(sums)).exact_B.sum()), count]


def tested(
    subject: Subject, pairs: Pairs, heads: tuple[Component, ...], others: tuple[Component, ...]
) -> dict[str, list[list[float]]]:
    """The effects of the heads, of all of them together, and of their controls: value, low, high and n for each
    direction of the carry."""
    groups = {**{str(head): (head,) for head in heads}, "together": heads, "controls": others}
    effect = effects(subject, pairs, groups)
    return {name: [estimate(effect.at(patch=name, carry=way)) for way in CARRY_DIRECTIONS] for name in groups}


@torch.inference_mode()
def looks(subject: Subject, pairs: Pairs, heads: Sequence[Component]) -> dict[str, dict[str, float]]:
    """The mean share of each head's attention at q_k that goes to each of LOOKED_AT, and to the token itself."""
    answered = Answered(subject, pairs)
    names = {head: f"blocks.{head.layer}.attn.hook_pattern" for head in heads}
    _, patterns = subject.activations(answered.contrast.base, sorted(set(names.values())))
    at_B1 = answered.contrast.base.query_at_BK[:, answered.contrast.column : answered.contrast.column + 1]
    found: dict[str, dict[str, float]] = {}
    for head, name in names.items():
        seen_BT = take(patterns[name][:, head.head], at_B1)[:, 0].float().cpu()
        found[str(head)] = {
            place: float((seen_BT * answered.contrast.at_BT(place)[:, : seen_BT.shape[1]]).sum(1).mean())
            for place in (*LOOKED_AT, HERE)
        }
    return found


def contents(subject: Subject, pairs: Pairs, head: Component) -> dict[str, Any]:
    """What explains the head's coordinate along its carry direction at q_1, and the effect of exchanging its parts."""
    train, test = (drawn(subject, SHORT, first, READ) for first in (0, READ))
    seen = head_contents.contents(subject, [head], [1], train, test)
    effect = head_contents.exchange(subject, pairs, {head: seen.directions[head, 1]}).effect
    explained = seen.explained.at(head=str(head), column=1)
    return {
        "head": str(head),
        "explained": {reading: estimate(explained.at(reading=reading)) for reading in head_contents.READINGS},
        "brings": {
            part: [estimate(effect.at(head=str(head), part=part, carry=way)) for way in CARRY_DIRECTIONS]
            for part in head_contents.PARTS
        },
    }


def show(found: dict[str, dict[str, Any]], results: Results) -> None:
    lengths = [int(name.split()[1]) for name in next(iter(found.values())) if name.startswith("test")]
    lines: list[tuple[Entry, ...]] = []
    for run, known in found.items():
        for name in known[f"test {SHORT}"]:
            seen = [known[f"looks {SHORT}"].get(name), known["looks before tuning"].get(name)]
            surer = larger if name == "controls" else smaller  # what speaks against the heads
            cells = [shown(surer(known[f"test {length}"][name])) for length in lengths]
            lines.append((run, name, *cells, *(looked(look, part) for look in seen for part in ("k-1", "k"))))
        able = [percent(wilson(*known[f"right {length}"])) for length in lengths]
        lines.append((run, "sums that are right", *able, *[""] * 4))
    title = (
        "The share of a carry that heads bring to the token that writes a digit, % (95 %), "
        "the smaller of both ways, of controls the larger"
    )
    looks = (f"{when}attention to place {part}" for when in ("", "before tuning: ") for part in ("k-1", "k"))
    results.show(
        Table(title, ("run", "heads", *(f"{length} digits" for length in lengths), *looks), lines, 2), "graft_heads"
    )


def show_contents(found: dict[str, dict[str, Any]], results: Results) -> None:
    lines: list[tuple[Entry, ...]] = []
    for run, known in found.items():
        of = known["contents"]
        explained = [shown(estimated(of["explained"][reading])) for reading in head_contents.READINGS]
        brings = [shown(smaller(of["brings"][part])) for part in head_contents.PARTS]
        lines.append((run, of["head"], *explained, *brings))
    title = (
        "What explains the carry coordinate of the first head, % of its variance, and what its parts bring of a carry"
    )
    columns = ("run", "head", *head_contents.READINGS, *head_contents.PARTS)
    results.show(Table(title, columns, lines, 2), "graft_heads_contents")


def looked(look: dict[str, float] | None, place: str) -> str:
    """The attention to the digits of a place of both numbers; empty for groups of heads."""
    return f"{100 * (look[f'a_{place}'] + look[f'b_{place}']):.0f} %" if look else ""


def biases(run: Path) -> np.ndarray:
    """The bias of each head to the digits of places k-1, k and k+1, the mean of both numbers: (layers, heads, 3)."""
    weights = load_file(run / "model" / "adapter_model.safetensors")
    (bias_LHK,) = (
        weight.float() for name, weight in weights.items() if name.endswith(("same_place.bias", "parts.coupled.bias"))
    )
    return bias_LHK.unflatten(2, (2, 3)).mean(2).numpy()


def show_biases(bias_RLHP: np.ndarray, results: Results) -> None:
    """A table and a figure of the heads that prefer a place most, and how alike the runs are."""
    runs, _, heads, _ = bias_RLHP.shape
    found: dict[str, dict[str, np.ndarray]] = {}
    for place, part in (("k-1", 0), ("k", 1)):
        more_RN = (bias_RLHP[..., part] - np.delete(bias_RLHP, part, -1).mean(-1)).reshape(runs, -1)
        first = np.argsort(-more_RN.mean(0))[:TESTED]
        found[place] = {f"L{one // heads}H{one % heads}": more_RN[:, one] for one in map(int, first)}
    title = "How much more a head is biased to the digits of a place than to those of other places, in logits, by run"
    if runs > 1:
        title += f"; all biases of two runs correlate by {alike(bias_RLHP)}, with heads shuffled in each layer by "
        order_RLH = np.random.default_rng(0).random(bias_RLHP.shape[:3]).argsort(2)
        title += alike(np.take_along_axis(bias_RLHP, order_RLH[..., None], 2))
    lines = [
        (place, head, *(f"{one:.1f}" for one in more_R))
        for place, preferring in found.items()
        for head, more_R in preferring.items()
    ]
    results.show(Table(title, ("place", "head", *map(str, range(runs))), lines, 2), "graft_heads_bias")
    with figures.figure_at(results.file("graft_heads.png"), (6.4, 2.8)) as figure:
        panels = figure.subplots(1, len(found), sharex=True)
        for axes, (place, preferring) in zip(panels, found.items(), strict=True):
            for row, more_R in enumerate(preferring.values()):
                axes.plot(more_R, [row] * runs, "o", color=figures.COLORS[0], alpha=0.6)
            axes.set_yticks(range(len(preferring)), list(preferring))
            axes.invert_yaxis()
            axes.set(xlabel="bias above other places (logits)", title=f"digits of place {place}")
        figures.headed(figure, f"The heads that prefer a place most; a dot for each of {runs} trainings")


def alike(bias_RLHP: np.ndarray) -> str:
    """The least and the largest correlation of the biases of two runs."""
    runs = len(bias_RLHP)
    found = np.corrcoef(bias_RLHP.reshape(runs, -1))[np.triu_indices(runs, 1)]
    return f"{found.min():.2f} to {found.max():.2f}"


def smaller(ways: Sequence[Sequence[float]]) -> Estimate:
    return min(map(estimated, ways), key=lambda one: one.value)


def larger(ways: Sequence[Sequence[float]]) -> Estimate:
    return max(map(estimated, ways), key=lambda one: one.value)


if __name__ == "__main__":
    main(sys.argv[1:])
