"""The instruments that are scored: each takes a trial and returns scores by name.

There are four kinds of contestants:

    nodes        Which heads and MLPs bring the carry?
    edges        Which component passes it to which?
    heads        Which head attends to which digit?
    direction    Along which direction of the residual stream is the carry written? Asked at the first site at which it
                 is read, and at the site before, at which there is no carry yet.

Nodes, edges and heads are scored by

    AUROC            the probability that a part of the circuit has a higher score than another part (ties count half)
    false alarms     how many parts outside the circuit are claimed
    missed           how many parts of the circuit are not claimed
    CPR, CMD         see `edges.Curve`, with resample ablation, on pairs on which the scores were not computed

and directions by

    |cos|            the absolute cosine of the direction and the true one
    rate             the share of test pairs whose carry the direction exchanges (interchange)
    |cos| mended     the same two scores for the direction without the part that nothing reads
    rate mended
    best random      the best rate of 20 random directions
    rate before      the rate at the site at which there is no carry yet
    claimed before   1 if the tests of `illusion` accept a direction at that site, which is always wrong
    illusion unseen  1 if they accept a direction whose |cos| is below 0.9
    truth denied     1 if they reject a direction whose |cos| is at least 0.9
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any

import numpy as np
import torch

from lab.probing.addition import ablation, alignment, illusion, interchange
from lab.probing.addition.interchange import Location
from lab.probing.addition.pairs import Pairs, carry_only, cross_digit, operands
from lab.probing.addition.positions import Sums
from lab.probing.answered import Answered
from lab.probing.benchmark.known import Adder, Known
from lab.probing.components import Component
from lab.probing.contrast import EVERYWHERE
from lab.probing.instruments import atp_star, attribution, edges, patching, path_patching
from lab.probing.measured import max_abs_over_directions, nanmean

Scores = Mapping[str, float]
_LENGTH, _COLUMN = 4, 2
"""Digits of the operands, and the column whose incoming carry is asked about."""
_CLAIMED = 0.05
"""A part with at least this score is claimed to belong to the circuit. Scores are normalized effects; those of ablation
are losses of right digits."""
_TRUE = 0.9
"""A direction with at least this |cos| to the truth is the carry."""
_IDLE = "idle carry"
"""The direction along which some adders write a second copy of the carry, which nothing reads."""


@dataclass(frozen=True)
class Trial:
    """An adder, with the pairs and sums that all contestants get."""

    adder: Adder[Any]
    pairs: int = 16
    steps: int = 10
    """Points of integrated gradients."""
    das_steps: int = 30
    seed: int = 0

    @cached_property
    def minimal(self) -> Pairs:
        return carry_only(_LENGTH, _COLUMN - 1, self.pairs, self.seed)

    @cached_property
    def unseen(self) -> Pairs:
        """Other pairs like the minimal ones, on which circuits are tested."""
        return carry_only(_LENGTH, _COLUMN - 1, self.pairs, self.seed + 3)

    @cached_property
    def train(self) -> Pairs:
        return cross_digit(_LENGTH, _COLUMN, 8 * self.pairs, self.seed + 1)

    @cached_property
    def test(self) -> Pairs:
        return cross_digit(_LENGTH, _COLUMN, 4 * self.pairs, self.seed + 2)

    @cached_property
    def sums(self) -> Sums:
        drawn = operands("uniform", _LENGTH, self.seed, 100 * self.pairs)
        same_layout = [(a, b) for a, b in drawn if len(str(a + b)) == _LENGTH]
        return self.adder.sums(same_layout[: 4 * self.pairs])

    @cached_property
    def graph(self) -> edges.Graph:
        return edges.Graph(self.adder)

    def nodes(self, scores: Mapping[Component, float], also: frozenset[Component] = frozenset()) -> Scores:
        """How well scores of components find the carry's circuit. `also`: further components that count as part of it,
        because the instrument cannot tell them apart."""
        circuit = self.adder.known.nodes | also
        values, is_in = zip(*((scores[one], one in circuit) for one in self.adder.components), strict=True)
        return parts(np.array(values), np.array(is_in))

    def edges(self, scores_WUR: np.ndarray) -> Scores:
        """How well scores find the circuit's edges between heads, MLPs and the logits. Edges from the embedding count
        only in CPR and CMD, because the true ones are not known. `scores_WUR`: the scores in each direction of the
        carry."""
        graph, true, scores_UR = self.graph, self.adder.known.edges, max_abs_over_directions(scores_WUR)
        some_UR = graph.is_edge_UR & (np.arange(len(graph.senders)) > 0)[:, None]
        is_in_UR = np.array([[(str(one), str(other)) in true for other in graph.receivers] for one in graph.senders])
        by_size = edges.curve(self.adder, self.unseen, scores_UR, ablations=("resample",))
        by_sign = edges.curve(self.adder, self.unseen, nanmean(scores_WUR, 0), ablations=("resample",), signed=True)
        areas = {"CPR": by_sign.cpr["resample"], "CMD": by_size.cmd["resample"]}
        return {**parts(scores_UR[some_UR], is_in_UR[some_UR]), **areas}

    @cached_property
    def eap_ig(self) -> np.ndarray:
        """The EAP-IG scores of all edges in both directions of the carry."""
        return edges.attribute(self.adder, self.minimal, max(2, self.steps)).value

    @cached_property
    def writes(self) -> Callable[[Location], illusion.Writes]:
        """What components wrote before a location; cached, because all directions at a location need it."""
        return cache(partial(illusion.read_writes, self.adder, self.minimal))

    @cached_property
    def examined(self) -> Callable[[str, Location], illusion.Evidence]:
        """The evidence on a contestant's direction at a location; cached, so each is learned only once."""
        return cache(partial(_examined, self))

    def known_sites(self) -> tuple[Location, Location]:
        """The site at which the carry is first read, and the site before it."""
        layer, site = self.adder.known.carry_sites[0]
        sites = self.adder.sites
        return Location(layer, site, _COLUMN), Location(layer, sites[sites.index(site) - 1], _COLUMN)


def auroc(scores: np.ndarray, is_in: np.ndarray) -> float:
    """The AUROC of scores; nan if all parts are in the circuit, or none."""
    inside, outside = scores[is_in], scores[~is_in]
    if not len(inside) or not len(outside):
        return float("nan")
    above = (inside[:, None] > outside).mean() + 0.5 * (inside[:, None] == outside).mean()
    return float(above)


def parts(scores: np.ndarray, is_in: np.ndarray) -> dict[str, float]:
    """AUROC, false alarms and misses of absolute scores, rounded to a millionth."""
    sizes = np.round(np.abs(np.nan_to_num(scores)), 6)
    claimed = sizes >= _CLAIMED
    return {
        "AUROC": auroc(sizes, is_in),
        "false alarms": float((claimed & ~is_in).sum()),
        "missed": float((~claimed & is_in).sum()),
    }


def _activation_patching(trial: Trial) -> Scores:
    heads = max_abs_over_directions(patching.patch_heads(trial.adder, trial.minimal).effect.value)[..., 0]
    mlps = max_abs_over_directions(patching.patch_mlps(trial.adder, trial.minimal, (EVERYWHERE,)).effect.value)[..., 0]
    return trial.nodes({one: heads[one.layer, one.head] if one.kind == "head" else mlps[one.layer]
                        for one in trial.adder.components})  # fmt: skip


def _attribution_patching(trial: Trial) -> Scores:
    answered = Answered(trial.adder, trial.minimal)
    guessed_BN = attribution.attributions(answered, (EVERYWHERE,))
    axes = {"component": range(guessed_BN.shape[1])}
    found = answered.effects_of_moves("attributed", axes, guessed_BN).effect.value
    order = sorted(trial.adder.components, key=lambda one: one.kind == "mlp")
    return trial.nodes(dict(zip(order, max_abs_over_directions(found), strict=True)))


def _ablation(replacement: ablation.Replacement, trial: Trial) -> Scores:
    """Ablation affects all components that digits need, so heads that bring a_k and b_k are not false alarms. Trained
    adders are not scored, because these heads are not known."""
    known = trial.adder.known
    if not isinstance(known, Known):
        return {}
    groups = [(one,) for one in trial.adder.components]
    lost = ablation.ablate(trial.adder, trial.sums, groups, replacement, "everywhere").column.value
    loss = np.nanmax(np.abs(lost), axis=1)
    digits = frozenset(Component("head", *where) for where in known.digit_heads)
    return trial.nodes(dict(zip(trial.adder.components, loss, strict=True)), digits)


def _node_sums(trial: Trial) -> Scores:
    """The score of a node is the sum of the scores of its outgoing edges."""
    by_sender = max_abs_over_directions(np.nansum(trial.eap_ig, axis=-1))
    return trial.nodes(dict(zip(trial.graph.senders, by_sender, strict=True)))


def _path_patching(trial: Trial) -> Scores:
    graph = trial.graph
    answered = Answered(trial.adder, trial.minimal)
    changed = path_patching.margins(answered, graph.senders, graph.receivers)
    effect = answered.effects("effect of a path", graph.names(), changed).effect
    return trial.edges(effect.value)


def _along_path(trial: Trial) -> Scores:
    steps = max(2, trial.steps)
    return trial.edges(edges.attribute(trial.adder, trial.minimal, steps, along_path=True).value)


def _random_nodes(trial: Trial) -> Scores:
    drawn = np.random.default_rng(trial.seed).random(len(trial.adder.components))
    return trial.nodes(dict(zip(trial.adder.components, drawn, strict=True)))


def _random_edges(trial: Trial) -> Scores:
    drawn_WUR = np.random.default_rng(trial.seed).normal(size=(2, *trial.graph.is_edge_UR.shape))
    return trial.edges(np.where(trial.graph.is_edge_UR, drawn_WUR, np.nan))


def _aligned(trial: Trial) -> Scores:
    """How many heads that attend to one digit are missed, decoys included, and how many are claimed wrongly."""
    known = trial.adder.known
    if not isinstance(known, Known):
        return {}
    found = alignment.aligned_heads(alignment.alignment(trial.adder, {_LENGTH: trial.sums}))
    claimed = {(one.layer, one.head): (one.number, one.offset) for one in found if one.number != "sum"}
    true = known.looks_at
    fetching = set(known.carry_heads) - set(true)  # these attend to the token that holds the carry, in any column
    wrong = sum(true.get(head) != where for head, where in claimed.items() if head not in fetching)
    return {"false alarms": float(wrong), "missed": float(sum(claimed.get(head) != true[head] for head in true))}


def _direction(name: str, trial: Trial) -> Scores:
    """Compares the evidence on a direction with its |cos| to the true one, at the first site at which the carry is
    read. At the site before, every claim is wrong. Trained adders have only rates, because the true direction is not
    known."""
    known = trial.adder.known
    if name == "truth" and not isinstance(known, Known):
        return {}
    if name == "idle" and not (isinstance(known, Known) and _IDLE in known.directions):
        return {}
    found, before = (trial.examined(name, location) for location in trial.known_sites())
    rates = {
        "rate": found.claim.rate,
        "rate mended": found.claim.mended_rate,
        "best random": found.claim.best_random,
        "rate before": before.claim.rate,
        "claimed before": float(before.claim.holds),
    }
    if not isinstance(known, Known):
        return rates
    cosine = found.cosines["truth"]
    return {
        "|cos|": cosine,
        "|cos| mended": illusion.cosine(found.mended_DR, known.carry_D[:, None]),
        **rates,
        "illusion unseen": float(found.claim.holds and cosine < _TRUE),
        "truth denied": float(not found.claim.holds and cosine >= _TRUE),
    }


def _examined(trial: Trial, name: str, location: Location) -> illusion.Evidence:
    known = trial.adder.known
    truth = {"truth": known.carry_D[:, None]} if isinstance(known, Known) else {}
    if name.endswith(illusion.MENDED):
        found = trial.examined(name.removesuffix(illusion.MENDED), location)
        if not found.mended_DR.shape[1]:
            return found
        basis_DR = found.mended_DR
    else:
        basis_DR = _basis(trial, name, location)
    wrote = trial.writes(location)
    return illusion.examine(trial.adder, name, basis_DR, location, trial.test, wrote, compared=truth, batch_size=128)


def _basis(trial: Trial, name: str, location: Location) -> torch.Tensor:
    """The direction of a contestant at a location, (D, 1)."""
    adder, train, known = trial.adder, trial.train, trial.adder.known
    if isinstance(known, Known) and name == "truth":
        return known.carry_D[:, None]
    if isinstance(known, Known) and name == "idle":
        idle_D = known.directions[_IDLE]
        mixed_D = known.carry_D + 2 * idle_D / idle_D.norm()
        return (mixed_D / mixed_D.norm())[:, None]
    if name == "das":
        return interchange.das(adder, train, location, steps=trial.das_steps)
    return interchange.basis(name, *interchange.labelled_streams(adder, train, location, 128))


CONTESTANTS: dict[str, Callable[[Trial], Scores]] = {
    "activation patching (nodes)": _activation_patching,
    "attribution patching (nodes)": _attribution_patching,
    "AtP* (nodes)": lambda trial: trial.nodes(atp_star.strongest(*atp_star.atp_star(trial.adder, trial.minimal))),
    "EAP-IG (nodes)": _node_sums,
    "mean ablation (nodes)": partial(_ablation, "mean"),
    "resample ablation (nodes)": partial(_ablation, "resample"),
    "random scores (nodes)": _random_nodes,
    "path patching (edges)": _path_patching,
    "EAP (edges)": lambda trial: trial.edges(edges.attribute(trial.adder, trial.minimal).value),
    "EAP-IG (edges)": lambda trial: trial.edges(trial.eap_ig),
    "EAP-IG along the path (edges)": _along_path,
    "random scores (edges)": _random_edges,
    "alignment (heads)": _aligned,
    "difference of means (direction)": partial(_direction, "difference of means"),
    "probe (direction)": partial(_direction, "probe"),
    "DAS (direction)": partial(_direction, "das"),
    "difference of means, mended (direction)": partial(_direction, "difference of means, mended"),
    "DAS, mended (direction)": partial(_direction, "das, mended"),
    "the carry and an idle copy (direction)": partial(_direction, "idle"),
    "the truth (direction)": partial(_direction, "truth"),
}
"""Contestants by the name that tables show. Random scores are what an instrument must beat. A mended direction is a
learned one without the part that nothing reads. Two directions are made by hand: "the truth" has the best possible
scores; the other one is mostly a copy of the carry that nothing reads, in adders that have such a copy."""
