"""How the answer to a sum of three digits goes from "no carry" to "carry" as the total of its tens rises, and how often
the digit of the hundreds is right.

The output of a part of a model at the token that predicts the hundreds comes from a donor: a sum whose tens have
another total and whose other digits are the same. 0 is the mean margin of sums without a carry, 1 that of sums with
one. A model that computes the carry exactly makes a step, at ten without a carry from the ones, and at nine with one.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np
import torch

from experiments.shared.estimates import estimate, estimated, shown
from lab.drawing.tables import Entry, Table, percent
from lab.errors import ModelError
from lab.numbers.columns import Columns
from lab.numbers.statistics import wilson
from lab.probing.addition.pairs import Pairs, carry_only, through_nine, with_totals
from lab.probing.answered import Answered, Runs
from lab.probing.batching import batches
from lab.probing.bridge import Subject
from lab.probing.components import Component
from lab.probing.instruments.patching import replacing
from lab.probing.interventions import said_digits
from lab.probing.measured import Measured

LENGTH, TENS, HUNDREDS = 3, 1, 2
TOTALS = (0, 2, 4, 6, 7, 8, 9, 10, 11, 12, 14, 16, 18)
SHOWN = (0, 4, 8, 9, 10, 14, 18)
"""Totals in the table; the figure has all."""
PAIRS = 60
"""Pairs that get each total."""
BATCH = 128
"""Rows of a forward pass."""
DECIDES = {"the tens": partial(carry_only, LENGTH, TENS), "the ones": partial(through_nine, LENGTH, TENS - 1)}
"""Which place decides about the carry into the hundreds, and how pairs are drawn for it (count, seed)."""
STREAM, HALF_WAY = "stream", "pairs half-way"
Curves: TypeAlias = Mapping[str, Mapping[str, Mapping[str, Sequence[float]]]]
"""Value, low, high and n by part, by the carry from the ones ("0" or "1") and by total."""


@torch.inference_mode()
def right_digits(subject: Subject, pairs: Pairs) -> dict[str, list[int]]:
    """How many digits of the hundreds are right, and of how many, without a carry and with one."""
    found = {}
    for carry, side in (("without", pairs.base), ("with", pairs.source)):
        sums = subject.sums(side)
        said_B = said_digits(subject, sums, HUNDREDS, lambda rows: [])
        found[carry] = [int((said_B == sums.columns.sum[:, HUNDREDS]).sum()), len(sums)]
    return found


def by_total(subject: Subject, heads: Sequence[str] = ()) -> Curves:
    """For each of the heads and for the whole stream after the last layer, and for the carry from the ones: how far the
    answer goes from "no carry" (0) to "carry" (1) for each total of the donor's tens. A pair counts once, in both
    directions.

    A mean can rise slowly although each pair makes a step, each at another total. So `HALF_WAY` is the share of pairs
    that the stream takes to between 0.25 and 0.75 of the way between their own two margins.

    Raises ModelError if the subject gets fewer than half of the pairs right, or none with (or without) a carry from
    the ones.
    """
    answered = Answered.of_right_pairs(subject, carry_only(LENGTH, TENS, PAIRS, seed=2), BATCH)
    parts = (*map(Component.named, heads), Component("post", subject.layers - 1))
    margins_BTP = np.concatenate([_given_totals(answered, rows, parts) for rows in batches(len(answered), BATCH)])
    # a margin is for the source's digit, which is that of "carry" only if the base has none
    without_B = np.where(answered.contrast.direction_B == 0, answered.corrupt_B, -answered.clean_B)
    towards_BTP = margins_BTP * np.where(answered.contrast.direction_B == 0, 1, -1)[:, None, None]
    moved_NTP = _both(towards_BTP - without_B.mean())
    own_gap_N = _both(answered.clean_B - answered.corrupt_B)
    gap_N = np.full(len(moved_NTP), own_gap_N.mean())
    own_NT = _both(towards_BTP[..., -1] - without_B[:, None]) / own_gap_N[:, None]
    half_way_NT = (own_NT > 0.25) & (own_NT < 0.75)
    from_ones_N = Columns.of(answered.contrast.base.numbers).carry[: len(gap_N), TENS]
    if len(set(from_ones_N.tolist())) < 2:
        raise ModelError("of the pairs that the model gets right, all have the same carry from the ones")
    found: dict[str, dict[str, dict[str, list[float]]]] = {}
    for place, name in enumerate((*heads, STREAM)):
        for carry in (0, 1):
            rows = from_ones_N == carry
            share = Measured.ratio("carried", {"total": TOTALS}, moved_NTP[rows, :, place], gap_N[rows])
            found.setdefault(name, {})[str(carry)] = {str(total): estimate(share.at(total=total)) for total in TOTALS}
    found[HALF_WAY] = {
        str(carry): {
            str(total): [*wilson(int(half_way_N.sum()), len(half_way_N))]
            for total, half_way_N in zip(TOTALS, half_way_NT[from_ones_N == carry].T, strict=True)
        }
        for carry in (0, 1)
    }
    return found


def _both(values_B: np.ndarray) -> np.ndarray:
    """The mean of each pair over its two directions."""
    return values_B.reshape(2, -1, *values_B.shape[1:]).mean(0)


@torch.inference_mode()
def _given_totals(answered: Answered, rows: slice, parts: Sequence[Component]) -> np.ndarray:
    """The margins (B, totals, parts) of some of the bases, if each part alone comes from a donor with another total."""
    subject, runs = answered.subject, Runs(answered, rows, [], [])
    at_CBT = torch.stack([answered.contrast.at_BT("q_k")[rows]] * len(parts))
    layers, found = range(min(part.layer for part in parts), subject.layers), []
    for total in TOTALS:
        donors = answered.contrast.donors(
            with_totals(answered.contrast.base.numbers, TENS, [total] * len(answered), seed=total)
        )
        _, given = subject.activations(donors.part(rows), [part.hook_point for part in parts])
        hooks = replacing([(part,) for part in parts], given, at_CBT)
        found.append(runs.rerun(layers, hooks, len(parts)).T)
    return torch.stack(found, 1).cpu().numpy()


def right_table(title: str, kind: str, found: Mapping[str, Mapping[str, Mapping[str, Sequence[int]]]]) -> Table:
    """A row for each model, given its counts by what decides (`DECIDES`, `right_digits`). `kind`: the heading of the
    models' names."""
    lines: list[tuple[Entry, ...]] = [
        (name, *(percent(wilson(*counts)) for part in right.values() for counts in part.values()))
        for name, right in found.items()
    ]
    columns = [f"{part}, {carry} a carry" for part in DECIDES for carry in ("without", "with")]
    return Table(f"{title}, by what decides about the carry into them (%, 95 %)", (kind, *columns), lines, 1)


def totals_table(title: str, kind: str, found: Mapping[str, Curves]) -> Table:
    """A row for each model, part and carry from the ones. `kind`: the heading of the models' names."""
    lines: list[tuple[Entry, ...]] = []
    for name, curves in found.items():
        for part, by_carry in curves.items():
            for carry, points in by_carry.items():
                lines.append((name, part, carry, *(shown(estimated(points[str(total)])) for total in SHOWN)))
    title = f"{title}, by the total of the donor's tens (%, 95 %)"
    return Table(title, (kind, "part", "carry from the ones", *map(str, SHOWN)), lines, 3)
