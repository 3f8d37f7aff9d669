"""What a model loses if the output of a head or an MLP no longer depends on the sum.

The output is replaced, token by token, by its mean over all sums (mean ablation) or by the output for another sum
(resample ablation; Chan et al. 2022, causal scrubbing). The replacement still depends on the token's position, but not
on the sum. Zero ablation is not offered: zeros would be an input that the rest of the model has never seen.

Losses are measured by column, by the stratum of the carry (`lab.numbers.columns`) and by the number of nines below the
column. For example, without a head that fetches carries, only columns with a carry are wrong. If two heads can stand in
for each other, ablating one of them changes nothing. Ablate them together, and compare with random pairs of heads.

Shapes: B sums, G groups of components, T tokens, K columns, H heads, Z width of a head, D width of the model.
"""

import itertools
from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import torch

from lab.errors import ModelError, TaskError, check_one_of
from lab.numbers.columns import STRATA, Columns
from lab.probing.addition.positions import Sums
from lab.probing.batching import batches
from lab.probing.bridge import Hook, Subject, check_components
from lab.probing.instruments.ablation import Group, Replacement, means
from lab.probing.instruments.patching import replacing
from lab.probing.measured import Measured, nanmean

Where: TypeAlias = Literal["queries", "everywhere"]
"""Which outputs are replaced: those at tokens that predict a digit or the end, or those at all tokens."""


class Ablation(NamedTuple):
    """Changes of accuracy by group of components; a loss is negative. A group's label joins its components with "+".

    Each sum is one sample: the mean over its digits in that column, stratum or chain. Each digit is predicted after the
    right digits.
    """

    exact: Measured
    """Axes: group."""
    column: Measured
    """Axes: group, column."""
    stratum: Measured
    """Axes: group, stratum (`STRATA`)."""
    chain: Measured
    """Axes: group, chain (the number of columns directly below whose digits add up to 9)."""
    intact: Measured
    """Accuracy of the unablated model. Axes: column."""


@torch.inference_mode()
def ablate(
    subject: Subject,
    sums: Sums,
    groups: Sequence[Group],
    replacement: Replacement = "mean",
    where: Where = "queries",
    batch_size: int = 256,
) -> Ablation:
    """Ablates each group in all sums.

    Args:
        sums: at least two sums, whose operands have the same lengths, because tokens are compared by position.
        groups: the components that are ablated together.
        replacement: what replaces an output: its mean over the sums, or the output for another sum.
        where: at which tokens outputs are replaced.

    Raises TaskError for an unknown replacement or `where`, if there are fewer than two sums, if the sums differ in the
    lengths of their operands, or if there is nothing to ablate, and ModelError for components that the model does not
    have.
    """
    check_one_of("replacement", replacement, get_args(Replacement))
    check_one_of("where", where, get_args(Where))
    _check(subject, sums, groups)
    points = _points(groups)
    order = np.random.default_rng(0).permutation(len(sums))
    source_B = np.empty(len(sums), dtype=int)
    source_B[order] = np.roll(order, 1)  # a single cycle: no sum gets its own output
    others = subject.sums([sums.numbers[other] for other in source_B])
    given = _means(subject, sums, points, batch_size) if replacement == "mean" else {}

    intact, exact, digits = [], [], []
    for rows in batches(len(sums), batch_size):
        part = sums.part(rows)
        here_BT = _queried(part) if where == "queries" else torch.ones_like(part.tokens_BT, dtype=torch.bool)
        instead = given or subject.activations(others.part(rows), points)[1]
        reading = part.read(subject.logits(part))
        exact_G, digits_G = [], []
        for few in batches(len(groups), max(1, batch_size // len(part))):
            some = groups[few]
            many = part.part([*range(len(part))] * len(some))  # one copy after another
            changed = many.read(subject.logits(many, replacing(some, instead, here_BT[None])))
            exact_G.append(changed.exact_B.unflatten(0, (len(some), -1)).float() - reading.exact_B.float())
            digits_G.append(changed.digits_BK.unflatten(0, (len(some), -1)) - reading.digits_BK)
        intact.append(reading.digits_BK)
        exact.append(torch.cat(exact_G).T)
        digits.append(torch.cat(digits_G).transpose(0, 1))
    names = ["+".join(map(str, group)) for group in groups]
    exact_BG, digits_BGK, intact_BK = (torch.cat(parts).numpy() for parts in (exact, digits, intact))
    return _measured(sums.columns, names, exact_BG, digits_BGK, intact_BK)


@torch.inference_mode()
def mean_hooks(subject: Subject, sums: Sums, group: Group, batch_size: int = 256) -> list[Hook]:
    """Hooks that mean-ablate a group at every token that predicts a digit or the end. They fit any batch whose tokens
    have the same positions as in `sums`, over which the means are taken.

    Raises the same errors as `ablate`.
    """
    _check(subject, sums, [group])
    return replacing([group], _means(subject, sums, _points([group]), batch_size), _queried(sums)[None, :1])


def _means(subject: Subject, sums: Sums, points: Sequence[str], batch_size: int) -> dict[str, torch.Tensor]:
    there_BT = torch.arange(sums.tokens_BT.shape[1]) <= sums.end_at_B[:, None]
    return means(subject, sums, there_BT, points, batch_size)


def _points(groups: Sequence[Group]) -> list[str]:
    return sorted({component.hook_point for group in groups for component in group})


def _queried(sums: Sums) -> torch.Tensor:
    """Whether a token predicts a digit or the end, (B, T)."""
    at_BQ = torch.cat([sums.query_at_BK, sums.end_at_B[:, None]], 1)
    tokens_T = torch.arange(sums.tokens_BT.shape[1])
    return (at_BQ[..., None] == tokens_T).any(1)


def _measured(
    columns: Columns, names: list[str], exact_BG: np.ndarray, digits_BGK: np.ndarray, intact_BK: np.ndarray
) -> Ablation:
    width = digits_BGK.shape[-1]
    has_BK = ~np.isnan(intact_BK)
    longest = int(columns.chain[has_BK].max())
    by_stratum, by_chain = (  # means over a sum's columns of one kind; nan for a sum without such columns
        np.stack([nanmean(np.where(kind_BK[:, None] == kind, digits_BGK, np.nan)) for kind in range(kinds)], -1)
        for kind_BK, kinds in ((columns.stratum, len(STRATA)), (columns.chain, longest + 1))
    )
    group = {"group": names}
    return Ablation(
        Measured.mean("change of exact match", group, exact_BG),
        Measured.mean("change of digits right", {**group, "column": range(width)}, digits_BGK),
        Measured.mean("change of digits right", {**group, "stratum": STRATA}, by_stratum),
        Measured.mean("change of digits right", {**group, "chain": range(longest + 1)}, by_chain),
        Measured.share("digits right", {"column": range(width)}, intact_BK),
    )


def _check(subject: Subject, sums: Sums, groups: Sequence[Group]) -> None:
    for component in itertools.chain(*groups):
        if component.kind not in ("head", "mlp"):
            raise ModelError(f"{component} is neither a head nor an MLP; only these can be ablated")
    check_components(subject, itertools.chain(*groups))
    if not groups or not all(groups):
        raise TaskError("nothing to ablate: give groups of at least one component")
    kinds = {(len(str(a)), len(str(b))) for a, b in sums.numbers}
    if len(sums) < 2 or len(kinds) > 1:
        raise TaskError(
            f"{len(sums)} sums with {len(kinds)} different pairs of operand lengths: ablation needs at least two sums, "
            "whose operands have the same lengths"
        )
