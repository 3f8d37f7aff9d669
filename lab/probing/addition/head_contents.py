"""Does a head hold the carry, or does it fetch the digits from which a carry follows?

Patching cannot tell. If a head brings the source's digits of column k - 1, a later component computes the source's
carry from them, and the answer changes as if the head had brought the carry itself. So this instrument looks at a
head's output at q_k, along the direction from its mean without a carry to its mean with one (`Subspace`, learned on
other sums). The coordinate along this direction is 0 at the first mean and 1 at the second.

    holds the carry       The coordinate is a step: it depends only on the carry, and not on how large the sum of the
                          two digits of column k - 1 is. If it is 9, the coordinate follows the carry into k - 1.
    fetches both digits   It is a straight line: each digit adds its part, and a later component has to find the step.
    fetches one digit     It depends only on a's digit, or only on b's.

For each of these readings, the instrument measures the share of the coordinate's variance that it explains, adjusted
for the number of groups. With uniform digits, a straight line explains two thirds of a step, and a step two thirds of a
straight line; so compare the two. `NESTED` models tell them apart: lines in a's digit, in both digits with a slope for
each, and in both digits and the carry. What the last one adds is what the head says of the carry beyond its digits.

`exchange` intervenes: it patches the source's coordinate, and nothing else of the head's output, into the base's run.
If this has the effect of the whole output, later components read the head along this direction. All of this is at q_k:
a head that brings the carry to other tokens, from where later heads fetch it, has its effect only at every token.

Shapes: N sums, Z width of a head, B pairs (each in both directions), R resamples.
"""

from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np
import torch

from lab.errors import TaskError
from lab.probing import interventions
from lab.probing.addition.pairs import Pairs
from lab.probing.addition.positions import Sums
from lab.probing.answered import Answered, Effects, Runs
from lab.probing.batching import batches
from lab.probing.bridge import Hook, Subject, check_components
from lab.probing.components import Component
from lab.probing.instruments.patching import replacing
from lab.probing.instruments.subspaces import Subspace, difference_of_means
from lab.probing.interventions import only_at, read_at, take
from lab.probing.measured import Measured, value_and_interval

READINGS = ("carry", "straight line", "digit sum", "a's digit", "b's digit")
"""What the coordinate may depend on: the carry into k; a_{k-1} + b_{k-1}, linearly or with a mean for each value; one
digit of column k - 1, with a mean for each value."""
NESTED = ("a", "a and b", "a, b and the carry")
"""Linear models of the coordinate, each of which contains the one before it."""
EVERY_TOKEN = "all of it at every token"
PARTS = ("all of it", "its carry direction", "the rest", EVERY_TOKEN)
"""The parts of a head's output that are exchanged: at q_k, all of it, its coordinate along the direction, and the rest,
which is orthogonal to it; and the output at every token, as `patching` exchanges it."""
_RESAMPLES = 300
_SUMS = range(19)


class Contents(NamedTuple):
    """What the outputs of heads hold."""

    explained: Measured
    """The share of the coordinate's variance that each of `READINGS` explains; axes (head, column, reading)."""
    lead: Measured
    """How much more variance the best reading explains than the second best; axes (head, column). "digit sum" does not
    take part, because it includes the straight line."""
    steps: Measured
    """The mean coordinate by a_{k-1} + b_{k-1} and the carry into column k - 1; axes (head, column, carry, sum)."""
    directions: dict[tuple[Component, int], Subspace]
    """The carry direction of each head and column."""
    nested: Measured
    """The share of the coordinate's variance that each of `NESTED` explains, adjusted for its number of slopes; axes
    (head, column, model)."""


def contents(
    subject: Subject, heads: Sequence[Component], columns: Sequence[int], train: Sums, test: Sums, batch_size: int = 64
) -> Contents:
    """What heads hold at q_k, for columns k.

    Args:
        heads: components of kind head.
        columns: above 0, because nothing is carried into the ones.
        train: sums on which the directions are learned. A sum is left out for a column that it does not have.
        test: other sums, on which everything is measured.

    Raises ModelError for heads that the subject does not have, and TaskError for other components and for columns that
    the sums do not have.
    """
    check_components(subject, heads)
    for column, sums in product(columns, (train, test)):
        sums.check_column(column)
    if not_heads := [str(one) for one in heads if one.kind != "head"]:
        raise TaskError(f"{not_heads[0]}: should be a head")
    learned, tested = (outputs(subject, heads, columns, sums, batch_size) for sums in (train, test))
    directions: dict[tuple[Component, int], Subspace] = {}
    shape = (len(heads), len(columns))
    explained, lead = np.full((3, *shape, len(READINGS)), np.nan), np.full((3, *shape), np.nan)
    nested = np.full((3, *shape, len(NESTED)), np.nan)
    steps = np.full((len(test), *shape, 2, len(_SUMS)), np.nan)
    for i, head in enumerate(heads):
        for j, k in enumerate(columns):
            there_N = _there(train, k)
            z_NZ, carry_N = learned[head, k][there_N], train.columns.carry[there_N, k]
            directions[head, k] = direction = Subspace.of(difference_of_means(z_NZ, carry_N), z_NZ, carry_N)
            there_N = _there(test, k)
            coordinate_N = _scaled(direction, tested[head, k]).numpy()
            explained[:, i, j], lead[:, i, j] = _explained(coordinate_N[there_N], test, there_N, k)
            nested[:, i, j] = _nested(coordinate_N[there_N], test, there_N, k)
            sums_N = (test.columns.a + test.columns.b)[:, k - 1]
            rows_N = np.flatnonzero(there_N)
            steps[rows_N, i, j, test.columns.carry[rows_N, k - 1], sums_N[rows_N]] = coordinate_N[rows_N]
    axes = {"head": list(map(str, heads)), "column": list(columns)}
    counts = np.broadcast_to(np.array([[_there(test, k).sum()] for k in columns]), explained.shape[1:])
    name = "share of a head's carry coordinate that is explained"
    by_sum = {**axes, "carry": [0, 1], "sum": list(_SUMS)}
    return Contents(
        Measured(name, {**axes, "reading": list(READINGS)}, *explained, n=counts),
        Measured("by how much the best reading leads", axes, *lead, n=counts[..., 0]),
        Measured.mean("mean carry coordinate of a head", by_sum, steps),
        directions,
        Measured(
            "share of a head's carry coordinate that nested lines explain", {**axes, "model": list(NESTED)}, *nested,
            n=counts[..., : len(NESTED)],
        ),
    )  # fmt: skip


def outputs(
    subject: Subject, heads: Sequence[Component], columns: Sequence[int], sums: Sums, batch_size: int = 64
) -> dict[tuple[Component, int], torch.Tensor]:
    """The output (N, Z) of each head at q_k, by head and column. Rows of sums without the column are meaningless."""
    names = sorted({head.hook_point for head in heads})
    read = read_at(subject, sums, names, sums.query_at_BK[:, list(columns)], batch_size)
    z_NKHZ = dict(zip(names, read, strict=True))
    return {(head, k): z_NKHZ[head.hook_point][:, j, head.head] for head in heads for j, k in enumerate(columns)}


@torch.inference_mode()
def exchange(subject: Subject, pairs: Pairs, heads: dict[Component, Subspace], batch_size: int = 64) -> Effects:
    """The effect of exchanging a part of a head's output; axes (carry, head, part). `heads`: each head with its
    direction (`Contents.directions`). Raises the same errors as `patching.patch`."""
    answered = Answered.of_right_pairs(subject, pairs, batch_size)
    names = sorted({head.hook_point for head in heads})
    changed = np.full((len(answered), len(heads), len(PARTS)), np.nan)
    for rows in batches(len(answered), batch_size):
        runs = Runs(answered, rows, names, names)
        at_B1 = answered.contrast.base.part(rows).query_at_BK[:, answered.contrast.column, None]
        for i, (head, direction) in enumerate(heads.items()):
            base_B1Z, source_B1Z = (
                take(run[head.hook_point][:, :, head.head], at_B1) for run in (runs.base, runs.source)
            )
            basis_Z1 = direction.basis_DR.to(base_B1Z)
            along_B1Z = (source_B1Z - base_B1Z) @ basis_Z1 @ basis_Z1.T
            moves = (source_B1Z - base_B1Z, along_B1Z, source_B1Z - base_B1Z - along_B1Z)
            for part, move_B1Z in enumerate(moves):
                hook = at_query(head, at_B1, partial(torch.add, other=move_B1Z))
                changed[rows, i, part] = runs.rerun(range(head.layer, subject.layers), [hook])[0].cpu().numpy()
            everywhere = replacing([[head]], runs.source, torch.ones(1, 1, 1, dtype=torch.bool))
            changed[rows, i, len(moves)] = runs.rerun(range(head.layer, subject.layers), everywhere)[0].cpu().numpy()
    axes = {"head": list(map(str, heads)), "part": list(PARTS)}
    return answered.effects("effect of a part of a head's output", axes, changed)


def at_query(head: Component, at_B1: torch.Tensor, change: interventions.Change) -> Hook:
    """A hook that changes the output of a head at q_k, (B, 1, Z)."""

    def changed(z_BTHZ: torch.Tensor) -> torch.Tensor:
        new_BTHZ = z_BTHZ.clone()
        new_BTHZ[:, :, head.head] = only_at(at_B1, change)(z_BTHZ[:, :, head.head])
        return new_BTHZ

    return interventions.heads(head.layer, changed)


def _there(sums: Sums, column: int) -> np.ndarray:
    """Which sums have an answer digit in the column, and digits of both numbers in the column below it."""
    tokens = (sums.query_at_BK[:, column], sums.a_at_BK[:, column - 1], sums.b_at_BK[:, column - 1])
    return np.logical_and.reduce([(at_B >= 0).numpy() for at_B in tokens])


def _scaled(direction: Subspace, z_NZ: torch.Tensor) -> torch.Tensor:
    """The coordinate along the direction, (N,): 0 at the mean without a carry, 1 at the mean with one."""
    along_N = (z_NZ @ direction.basis_DR)[:, 0]
    return (along_N - direction.mean_0_R) / (direction.mean_1_R - direction.mean_0_R)


def _explained(coordinate_N: np.ndarray, sums: Sums, there_N: np.ndarray, column: int) -> tuple[np.ndarray, np.ndarray]:
    """Value, low and high of the share that each reading explains, (3, readings), and of the lead of the best one,
    (3,); intervals by bootstrap over the sums."""
    digits = sums.columns
    a_N, b_N = digits.a[there_N, column - 1], digits.b[there_N, column - 1]
    groups = {
        "carry": digits.carry[there_N, column],
        "straight line": a_N + b_N,
        "digit sum": a_N + b_N,
        "a's digit": a_N,
        "b's digit": b_N,
    }
    draw = np.random.default_rng(0)
    drawn = [np.arange(len(coordinate_N)), *draw.integers(0, len(coordinate_N), (_RESAMPLES, len(coordinate_N)))]
    shares_RX = np.array([
        [_share(coordinate_N[rows], groups[name][rows], name == "straight line") for name in READINGS] for rows in drawn
    ])  # fmt: skip
    rivals = [index for index, name in enumerate(READINGS) if name != "digit sum"]
    second, first = sorted(rivals, key=lambda index: shares_RX[0, index])[-2:]
    lead_R = shares_RX[:, first] - shares_RX[:, second]
    return value_and_interval(shares_RX), value_and_interval(lead_R)


def _nested(coordinate_N: np.ndarray, sums: Sums, there_N: np.ndarray, column: int) -> np.ndarray:
    """Value, low and high of the share that each nested model explains, (3, models), by bootstrap over the sums."""
    digits = sums.columns
    facts = (digits.a[there_N, column - 1], digits.b[there_N, column - 1], digits.carry[there_N, column])
    facts_NF = np.stack([np.ones(len(coordinate_N)), *facts], axis=1)
    draw, count = np.random.default_rng(0), len(coordinate_N)

    def share(rows: np.ndarray, slopes: int) -> float:
        read_NF, values_N = facts_NF[rows, : 1 + slopes], coordinate_N[rows]
        left_N = values_N - read_NF @ np.linalg.lstsq(read_NF, values_N, rcond=None)[0]
        return float(1 - (left_N @ left_N) / (count - 1 - slopes) / values_N.var(ddof=1))

    drawn = [np.arange(count), *draw.integers(0, count, (_RESAMPLES, count))]
    return value_and_interval(np.array([[share(rows, slopes + 1) for slopes in range(len(NESTED))] for rows in drawn]))


def _share(values_N: np.ndarray, group_N: np.ndarray, line: bool) -> float:
    """R^2 of a line in `group_N`, or of a mean for each group, adjusted for the number of groups."""
    if line:
        return float(np.corrcoef(values_N, group_N)[0, 1] ** 2)
    counts = np.bincount(group_N)
    means = np.bincount(group_N, values_N) / np.maximum(counts, 1)
    left, free = ((values_N - means[group_N]) ** 2).sum(), len(values_N) - (counts > 0).sum()
    return float(1 - (left / free) / values_N.var(ddof=1))
