"""The heads of an opened model that scripts choose: those with the largest effects, and random ones as controls."""

import itertools
from collections.abc import Sequence

import numpy as np

from lab.errors import ModelError
from lab.probing.addition.pairs import Pairs
from lab.probing.bridge import Subject
from lab.probing.components import Component
from lab.probing.contrast import EVERYWHERE
from lab.probing.instruments import attribution
from lab.probing.instruments.ablation import Group


def random_groups(subject: Subject, group: Group, count: int) -> list[Group]:
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
    order = np.random.default_rng(0).permutation(len(groups))
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
