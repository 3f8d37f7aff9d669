"""What scripts do with the heads of an opened model beyond the instruments of the lab: draw control groups, rank heads,
tell a head a carry, and set how much attention heads give to digits that are not needed.

Shapes: B sums, N sums, T tokens, Q columns and the end.
"""

import itertools
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import torch

from lab.errors import ModelError
from lab.probing import interventions
from lab.probing.bridge import Hook, Subject
from lab.probing.components import Component
from lab.probing.contrast import EVERYWHERE
from lab.probing.instruments import attribution
from lab.probing.instruments.ablation import Group
from lab.probing.instruments.alignment import foreign_digits, queries
from lab.probing.instruments.head_contents import at_query
from lab.probing.instruments.subspaces import Subspace
from lab.probing.interventions import put, said_digits, take
from lab.probing.pairs import Pairs
from lab.probing.positions import Sums


def random_groups(subject: Subject, group: Group, count: int, seed: int) -> list[Group]:
    """Controls for an ablation: up to `count` random groups, each of as many other heads in the same layers as `group`
    has.

    Raises ModelError if there are none, as for an MLP, because a layer has only one.
    """
    choices = []
    for layer in sorted({component.layer for component in group}):
        own = {component for component in group if component.layer == layer}
        free = {Component("head", layer, head) for head in range(subject.heads)} - own
        heads_alone = all(component.kind == "head" for component in own)
        choices.append(list(itertools.combinations(sorted(free), len(own))) if heads_alone else [])
    groups = [tuple(itertools.chain(*chosen)) for chosen in itertools.product(*choices)]
    if not groups:
        names = "+".join(map(str, group))
        raise ModelError(f"{subject.name}: no heads beside {names} that could be its control")
    order = np.random.default_rng(seed).permutation(len(groups))
    return [groups[place] for place in order[:count]]


def discovery(subject: Subject, pairs: Pairs, screened: int) -> dict[str, float]:
    """The effects of the heads among the `screened` heads and MLPs that attribution ranks first, at all tokens: for
    each, the larger of the effects in the two directions of the carry."""
    exact = attribution.screen(subject, pairs, (EVERYWHERE,), screened, batch_size=64).exact
    effects = np.nan_to_num(exact.value).max(0)
    named = zip((name.removesuffix(f" {EVERYWHERE}") for name in exact.axes["patch"]), effects, strict=True)
    return {name: float(effect) for name, effect in named if "H" in name}


def strongest(ranked: Sequence[dict[str, float]], count: int) -> list[str]:
    """The heads with the largest mean effect over several measurements; a head that is missing from one of them counts
    as 0 there."""
    names = {name for effects in ranked for name in effects}
    total = {name: sum(effects.get(name, 0.0) for effects in ranked) for name in names}
    return sorted(total, key=lambda name: -total[name])[:count]


@torch.inference_mode()
def told(
    subject: Subject, sums: Sums, column: int, head: Component, direction: Subspace, carry_N: np.ndarray
) -> np.ndarray:
    """The most likely digit at q_k (N,), if a head's coordinate is set to its mean for the carries `carry_N` (N,).

    If the rest of the model relies on the head, a wrong carry changes the digit of every sum, and the right carry
    corrects those errors that come from a wrong carry. `direction`: see `head_contents.Contents`.
    """
    query_B1, said_B1 = sums.query_at_BK[:, column, None], torch.from_numpy(carry_N)[:, None]

    def hooks(rows: slice) -> list[Hook]:
        return [at_query(head, query_B1[rows], partial(direction.write, carry_BQ=said_B1[rows]))]

    return said_digits(subject, sums, column, hooks)


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
