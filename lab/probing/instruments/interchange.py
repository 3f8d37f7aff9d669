"""Interchange interventions: which subspace of the residual stream holds what differs between base and source?

A model reads a base and a source. At one layer and site, and at the tokens with one role, the part of the base's stream
in a subspace is replaced by that of the source's:

    x' = x_base + V V^T (x_source - x_base)             V (D, r) orthonormal

If the subspace holds what differs, the model answers the base like the source, or as the contrast's `outcomes` say
(interchange interventions: Geiger et al. 2021, arXiv 2106.02997, and 2301.04709). V is the whole space, the difference
of the means of bases and sources within a direction, random, or found by gradient descent ("das", distributed alignment
search; Geiger et al. 2023, arXiv 2303.02536). Subspaces are learned on some pairs and tested on others.

Controls: nothing is exchanged; a random subspace; and the placebo, a change of the same size in a random direction. A
rate above all controls does not yet make a direction the variable with which the model computes: for the carry of
additions, lab/probing/addition/illusion.py tests that.

Shapes: B rows, T tokens, D width of the model, R rank.
"""

import itertools
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from lab.errors import TaskError
from lab.probing.answered import Answered
from lab.probing.batching import batches
from lab.probing.bridge import Subject
from lab.probing.components import Component, Site
from lab.probing.contrast import LAST, Asked, Contrast, Contrasting
from lab.probing.instruments.subspaces import check_basis, random_basis
from lab.probing.interventions import Change, only_logits_at, residual
from lab.probing.measured import Measured

SUBSPACES = ("nothing", "random", "difference of means", "das", "whole")
CHANGES = ("interchange", "placebo")


class Location(NamedTuple):
    """Where the residual stream is changed."""

    layer: int
    site: Site
    place: str = LAST
    """The role of the tokens."""


def interchange(
    subject: Subject,
    pairs: Contrasting,
    locations: Sequence[Location] | None = None,
    subspaces: Sequence[str] = SUBSPACES,
    steps: int = 60,
    batch_size: int = 64,
) -> Measured:
    """How often each outcome is the answer after an interchange: axes layer, site, place, subspace, change, outcome.

    The pairs that the model answers right are split: subspaces are learned on the first half, and tested on the second.

    Args:
        locations: every layer's stream at its end, at the last token, if not given; they should be a grid.
        subspaces: some of `SUBSPACES`.
        steps: gradient steps of das.

    Raises the same errors as `Answered.of_right_pairs`, and TaskError if fewer than two pairs are right.
    """
    locations = locations or [Location(layer, "post") for layer in range(subject.layers)]
    contrast = Answered.of_right_pairs(subject, pairs, batch_size).contrast
    train, test = halves(contrast)
    axes = {name: list(dict.fromkeys(one[at] for one in locations)) for at, name in enumerate(Location._fields)}
    axes |= {"subspace": list(subspaces), "change": list(CHANGES), "outcome": list(contrast.expected())}
    hits = np.full((len(test), *map(len, axes.values())), np.nan)
    for location in locations:
        at = tuple(axes[name].index(value) for name, value in location._asdict().items())
        learned = learn(subject, train, location, subspaces, steps, batch_size)
        for number, name in enumerate(subspaces):
            hits[(slice(None), *at, number)] = outcomes(subject, test, location, learned[name], batch_size)
    return Measured.share("interchange", axes, hits)


def learn(
    subject: Subject, train: Contrast, location: Location, subspaces: Sequence[str], steps: int, batch_size: int
) -> Mapping[str, torch.Tensor]:
    """The orthonormal columns (D, R) of each subspace."""
    rows = {"nothing": lambda: torch.zeros(subject.width, 0), "whole": lambda: torch.eye(subject.width),
            "random": lambda: random_basis(subject.width, 1),
            "difference of means": lambda: means_apart(subject, train, location, batch_size),
            "das": lambda: das(subject, train, location, steps=steps, batch_size=batch_size)}  # fmt: skip
    return {name: rows[name]() for name in subspaces}


def means_apart(subject: Subject, train: Contrast, location: Location, batch_size: int = 64) -> torch.Tensor:
    """The unit vector (D, 1) from the mean stream of bases to that of sources, over the rows of the first direction."""
    first = np.flatnonzero(train.direction_B == 0).tolist() or list(range(len(train)))
    part = train.part(first)
    there_BT = part.at_BT(location.place)
    base, source = (_at(subject, side, location, there_BT, batch_size) for side in (part.base, part.source))
    difference_D = source.mean(0) - base.mean(0)
    return (difference_D / difference_D.norm().clamp(min=1e-30))[:, None].cpu()


@torch.inference_mode()
def outcomes(
    subject: Subject, contrast: Contrast, location: Location, basis_DR: torch.Tensor, batch_size: int = 64
) -> np.ndarray:
    """Whether each row has each outcome after a change, (B, changes, outcomes).

    Raises ModelError if the basis is not orthonormal.
    """
    check_basis(basis_DR, subject.width)
    expected_BO = torch.stack(list(contrast.expected().values()), 1)
    generator, found = torch.Generator().manual_seed(0), []
    for rows in batches(len(contrast), batch_size):
        part = contrast.part(rows)
        moves = _moves(subject, part, location, basis_DR)
        noise = torch.randn(moves.shape, generator=generator).to(moves)
        size = moves.norm(dim=-1, keepdim=True)
        changes = (moves, noise * size / noise.norm(dim=-1, keepdim=True))
        said = [_logits(subject, part, location, move)[:, 0].argmax(-1).cpu() for move in changes]
        found.append(torch.stack([one[:, None] == expected_BO[rows] for one in said], 1))
    return torch.cat(found).float().numpy()


@torch.inference_mode(False)
def das(
    subject: Subject,
    contrast: Contrast,
    location: Location,
    *,
    rank: int = 1,
    steps: int = 60,
    batch_size: int = 64,
    seed: int = 0,
    start_DR: torch.Tensor | None = None,
) -> torch.Tensor:
    """Orthonormal columns (D, R) whose interchange gives the first of the contrast's outcomes, found with Adam on the
    cross-entropy.

    The basis is the Q of a QR decomposition, through which gradients pass. Its first columns start as `start_DR`, the
    difference of means if not given, the others are random: from random starts, the carry of an adder with switches as
    sharp as those written by hand is found only half the time. Each step uses one batch. The weights do not change.
    """
    found_DR = random_basis(subject.width, rank, seed)
    start_DR = means_apart(subject, contrast, location, batch_size) if start_DR is None else start_DR
    found_DR[:, : start_DR.shape[1]] = start_DR
    found_DR.requires_grad_()
    target_B = next(iter(contrast.expected().values())).to(subject.device)
    # the entries of a unit vector are about 1 / sqrt(D), and so is the size of the steps
    optimizer = torch.optim.Adam([found_DR], lr=0.05 / subject.width**0.5)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    parts = [(rows, contrast.part(rows)) for rows in batches(len(contrast), batch_size)]
    known = [(rows, part, stream_differences(subject, part, location)) for rows, part in parts]
    for rows, part, difference in itertools.islice(itertools.cycle(known), steps):
        with torch.enable_grad():
            basis_DR = torch.linalg.qr(found_DR)[0].to(subject.device)
            logits_BV = _logits(subject, part, location, difference @ basis_DR @ basis_DR.T)[:, 0]
            loss = cross_entropy(logits_BV.float(), target_B[rows])
            # only the gradient of the basis: the model's weights get none
            (found_DR.grad,) = torch.autograd.grad(loss, [found_DR])
        optimizer.step()
        schedule.step()
    return torch.linalg.qr(found_DR.detach())[0]


def halves(contrast: Contrast) -> tuple[Contrast, Contrast]:
    """Pairs to learn from, and other ones to test on."""
    pairs = np.unique(contrast.pair_B.numpy())
    if len(pairs) < 2:
        raise TaskError(f"{len(pairs)} pair: an interchange needs pairs to learn from and other ones to test on")
    first = np.isin(contrast.pair_B.numpy(), pairs[: len(pairs) // 2])
    return contrast.part(np.flatnonzero(first).tolist()), contrast.part(np.flatnonzero(~first).tolist())


def stream_differences(subject: Subject, part: Contrast, location: Location) -> torch.Tensor:
    """The source's stream minus the base's at the location, (B, T, D); 0 at all other tokens."""
    name = Component(location.site, location.layer).hook_point
    with torch.no_grad():
        base, source = (subject.activations(side, [name])[1][name].float() for side in (part.base, part.source))
    there_BT1 = part.at_BT(location.place)[..., None].to(base.device)
    return torch.where(there_BT1, source - base, 0.0)


def _moves(subject: Subject, part: Contrast, location: Location, basis_DR: torch.Tensor) -> torch.Tensor:
    basis = basis_DR.to(subject.device)
    return stream_differences(subject, part, location) @ basis @ basis.T


def _logits(subject: Subject, part: Contrast, location: Location, move_BTD: torch.Tensor) -> torch.Tensor:
    """The logits (B, Q, V) of the bases if the stream is moved at the location."""
    change: Change = partial(_add, move_BTD)
    hooks = residual(location.layer, location.site, change)
    return subject.logits(part.base, [*hooks, only_logits_at(part.query_at_BQ)])


def _add(move_BTD: torch.Tensor, stream_BTD: torch.Tensor) -> torch.Tensor:
    return stream_BTD + move_BTD.to(stream_BTD.dtype)


@torch.inference_mode()
def _at(subject: Subject, asked: Asked, location: Location, there_BT: torch.Tensor, batch_size: int) -> torch.Tensor:
    """The mean stream of each row over the tokens with the role, (B, D)."""
    name, found = Component(location.site, location.layer).hook_point, []
    for rows in batches(len(asked), batch_size):
        stream_BTD = subject.activations(asked.part(rows), [name])[1][name].float()
        weights_BT1 = there_BT[rows, :, None].to(stream_BTD)
        found.append((stream_BTD * weights_BT1).sum(1) / weights_BT1.sum(1).clamp(min=1))
    return torch.cat(found)
