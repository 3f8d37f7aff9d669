"""Interchange interventions on a carry: is a direction of the residual stream the carry with which the model computes?

A model reads two sums, a base and a source, whose carries into column k differ (`pairs.cross_digit`). At q_k, one layer
and one site, the part of the base's residual stream in a subspace is replaced by that of the source's:

    x' = x_base + V V^T (x_source - x_base)             V (D, r) orthonormal

If the subspace is the carry, digit k of the base becomes (a_k + b_k of the base + carry of the source) mod 10
(interchange interventions: Geiger et al. 2021, arXiv 2106.02997, and 2301.04709). The digits of source and base are
drawn independently so that a subspace that exchanges the whole answer can be told from the carry: it yields the
source's own digit, whose rate is reported too.

Subspaces:

    difference of means     from the mean of streams without a carry to that of streams with one
    probe                   the weights of a softmax regression that reads the carry (`probes.fit`)
    das                     distributed alignment search: V is learned by gradient descent, so that training pairs give
                            their targets (Geiger et al. 2023, arXiv 2303.02536)

Controls: exchange `nothing` (how often the model is right), the `whole` stream (should swap the answers), or `random`
subspaces (20, each for a twentieth of the pairs); and for each subspace the `placebo`, a change of the same size in a
random direction. But even a rate above all controls does not make a direction the carry: see `illusion`.

Shapes: N pairs, D width of the model, R rank, V words of the vocabulary, T tokens.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch

from lab.errors import TaskError, check_one_of
from lab.probing.addition.carries import CARRY_DIRECTIONS
from lab.probing.addition.pairs import Pairs, cross_digit
from lab.probing.addition.positions import Sums
from lab.probing.batching import batches
from lab.probing.bridge import Subject
from lab.probing.components import Site
from lab.probing.instruments import interchange as any_interchange
from lab.probing.instruments.subspaces import Subspace, check_basis, difference_of_means, probe_direction, random_basis
from lab.probing.interventions import Change, only_at, only_logits_at, read_queries, residual
from lab.probing.measured import Measured

OUTCOMES = ("target", "swapped answer", "unchanged", "other neighbour")
"""Which digit is the most likely token. "target": the base's digit with the source's carry, one more or one less (mod
10) than the base's own. "swapped answer": the source's own digit, if it differs from the base's. "unchanged": the
base's own. "other neighbour": one less or one more than the base's own, opposite to the target. An arbitrary change
produces both neighbours equally often, so only a rate of "target" above "other neighbour" means something."""
DIRECTIONS = ("both", *CARRY_DIRECTIONS)
CHANGES = ("interchange", "placebo")
DRAWS = 20
"""Number of random subspaces."""
LEARNED = ("difference of means", "probe", "das")
SUBSPACES = ("nothing", "whole", "random", *LEARNED)


class Location(NamedTuple):
    """Where the residual stream is changed: at a site of a layer, at q_k of a column k."""

    layer: int
    site: Site
    column: int


class Interchanged(NamedTuple):
    """Rates of interchange, and the subspaces that were learned."""

    rates: Measured
    """Axes (layer, site, column, subspace, change, direction, outcome)."""
    subspaces: dict[tuple[Location, str], Subspace]
    """The learned subspaces, by location and name."""


def interchange_all(
    subject: Subject,
    length: int,
    *,
    layers: Sequence[int] | None = None,
    sites: Sequence[Site] | None = None,
    columns: Sequence[int] | None = None,
    subspaces: Sequence[str] = SUBSPACES,
    train_pairs: int = 200,
    test_pairs: int = 200,
    das_steps: int = 60,
    batch_size: int = 64,
    seed: int = 0,
) -> Interchanged:
    """Exchanges each subspace at each layer, site and column, on numbers of `length` digits.

    Each location and subspace takes two forward passes over the test pairs, and das also takes `das_steps` passes with
    gradients over one batch each.

    Args:
        length: digits of both numbers.
        columns: if not given, all but the first and the last. Pairs of the last column are a biased sample: their sums
            must not grow by a digit, so a_k + b_k is smaller if there is a carry, and a difference of means finds that
            instead of the carry.
        subspaces: some of `SUBSPACES`.
        train_pairs: pairs from which subspaces are learned.
        test_pairs: other pairs, on which they are tested.
        das_steps: number of gradient steps.

    Raises TaskError for a column without a carry into it, and for an unknown subspace.
    """
    layers, sites = range(subject.layers) if layers is None else layers, sites or subject.sites
    columns = range(1, max(2, length - 1)) if columns is None else columns
    for name in subspaces:
        check_one_of("subspace", name, SUBSPACES)
    locations: list[tuple[int, Site]] = [(layer, site) for layer in layers for site in sites]
    found: dict[tuple[Location, str], Subspace] = {}
    shape = (test_pairs, len(layers), len(sites), len(columns), len(subspaces))
    hits = np.full((*shape, len(CHANGES), len(DIRECTIONS), len(OUTCOMES)), np.nan)
    for j, column in enumerate(columns):
        train, test = pairs_for(length, column, train_pairs, test_pairs, seed)
        known, asked = subject.sums([*train.base, *train.source]), _Asked.of(subject, test)
        known_GND, source_GND = (
            read_queries(subject, sums, locations, [column], batch_size)[:, :, 0] for sums in (known, asked.source)
        )
        carry_N = known.columns.carry[:, column]
        for i, (layer, site) in enumerate(locations):
            location = Location(layer, site, column)
            for m, name in enumerate(subspaces):
                at = (slice(None), i // len(sites), i % len(sites), j, m)
                if name == "random":
                    hits[at] = _randomly(asked, location, source_GND[i], batch_size, seed)
                    continue
                if name == "das":
                    basis_DR = das(subject, train, location, steps=das_steps, batch_size=batch_size, seed=seed)
                else:
                    basis_DR = basis(name, known_GND[i], carry_N)
                if name in LEARNED:
                    found[location, name] = Subspace.of(basis_DR, known_GND[i], carry_N)
                hits[at] = _outcomes(asked, location, source_GND[i], basis_DR, batch_size, seed)
    axes = {"layer": list(layers), "site": list(sites), "column": list(columns), "subspace": list(subspaces)}
    return Interchanged(Measured.share("interchange", axes | _OUTCOME_AXES, hits), found)


def basis(name: str, known_ND: torch.Tensor, carry_N: np.ndarray) -> torch.Tensor:
    """The orthonormal columns (D, R) of a subspace, from the streams (N, D) of the training pairs at a location. Raises
    TaskError for other names; "das" and "random" have functions of their own (`das`, `random_basis`)."""
    check_one_of("subspace", name, ("nothing", "whole", "difference of means", "probe"))
    match name:
        case "nothing":
            return torch.zeros(known_ND.shape[1], 0)
        case "whole":
            return torch.eye(known_ND.shape[1])
        case "difference of means":
            return difference_of_means(known_ND, carry_N)
        case _:
            return probe_direction(known_ND, carry_N)


def pairs_for(length: int, column: int, train_pairs: int, test_pairs: int, seed: int) -> tuple[Pairs, Pairs]:
    """Cross-digit pairs for training, and other ones for testing. Raises the same errors as `cross_digit`."""
    both = cross_digit(length, column, train_pairs + test_pairs, seed)
    return both.part(slice(train_pairs)), both.part(slice(train_pairs, None))


def interchange(
    subject: Subject, pairs: Pairs, location: Location, basis_DR: torch.Tensor, *, batch_size: int = 64
) -> Measured:
    """Interchange of a given subspace at one location: axes (change, direction, outcome).

    Raises ModelError if the basis is not orthonormal, and TaskError if the pairs are for another column.
    """
    check_basis(basis_DR, subject.width)
    if location.column != pairs.column:
        raise TaskError(f"column {location.column}: the pairs are for column {pairs.column}")
    asked = _Asked.of(subject, pairs)
    source_ND = streams(subject, asked.source, location, batch_size)
    hits = _outcomes(asked, location, source_ND, basis_DR, batch_size)
    return Measured.share("interchange", _OUTCOME_AXES, hits)


def random_rates(
    subject: Subject, pairs: Pairs, location: Location, rank: int = 1, *, batch_size: int = 64
) -> Measured:
    """Interchange of `DRAWS` random subspaces, each with all pairs: axes (draw, direction, outcome). A learned subspace
    should have a better rate than the best of them."""
    asked = _Asked.of(subject, pairs)
    source_ND = streams(subject, asked.source, location, batch_size)
    drawn = (random_basis(subject.width, rank, draw) for draw in range(DRAWS))
    hits = [_outcomes(asked, location, source_ND, basis_DR, batch_size)[:, 0] for basis_DR in drawn]
    axes = {"draw": list(range(DRAWS)), "direction": list(DIRECTIONS), "outcome": list(OUTCOMES)}
    return Measured.share("interchange of random subspaces", axes, np.stack(hits, 1))


def _randomly(asked: "_Asked", location: Location, source_ND: torch.Tensor, batch_size: int, seed: int) -> np.ndarray:
    """Like `_outcomes`, for random subspaces, each with a twentieth of the pairs."""
    hits = np.full((len(asked.base), len(CHANGES), len(DIRECTIONS), len(OUTCOMES)), np.nan)
    for draw in range(min(DRAWS, len(hits))):
        some = slice(draw, None, DRAWS)
        basis_DR = random_basis(source_ND.shape[1], 1, seed + draw)
        hits[some] = _outcomes(asked.part(some), location, source_ND[some], basis_DR, batch_size, seed + draw)
    return hits


_OUTCOME_AXES = {"change": list(CHANGES), "direction": list(DIRECTIONS), "outcome": list(OUTCOMES)}


class _Asked(NamedTuple):
    """Pairs as a subject reads them."""

    subject: Subject
    base: Sums
    source: Sums
    token_NO: np.ndarray
    """The token of each of `OUTCOMES`."""
    counts_N3: np.ndarray
    """Whether a pair counts for each of `DIRECTIONS`."""

    @classmethod
    def of(cls, subject: Subject, pairs: Pairs) -> "_Asked":
        base, source = subject.sums(pairs.base), subject.sums(pairs.source)
        digits = (source.columns.carry, source.columns.sum, base.columns.sum)
        carry_N, theirs_N, own_N = (array[:, pairs.column] for array in digits)
        token_of_digit = np.array(subject.writer.digit_ids())
        opposite_N = (2 * own_N - pairs.target) % 10
        token_NO = token_of_digit[np.stack([pairs.target, theirs_N, own_N, opposite_N], axis=1)]
        # if both sums have the same digit, it does not show whether the answer was swapped
        token_NO[:, 1] = np.where(theirs_N == own_N, _NO_TOKEN, token_NO[:, 1])
        return cls(subject, base, source, token_NO, np.stack([np.ones_like(carry_N), carry_N, 1 - carry_N], axis=1))

    def part(self, rows: slice) -> "_Asked":
        base, source = self.base.part(rows), self.source.part(rows)
        return _Asked(self.subject, base, source, self.token_NO[rows], self.counts_N3[rows])


_NO_TOKEN = -1


@torch.inference_mode()
def _outcomes(
    asked: _Asked, location: Location, source_ND: torch.Tensor, basis_DR: torch.Tensor, batch_size: int, seed: int = 0
) -> np.ndarray:
    """Whether each pair had each outcome, (N, change, direction, outcome); nan if the pair does not count."""
    generator = torch.Generator().manual_seed(seed)
    found_CN: list[list[int]] = [[], []]
    for rows in batches(len(asked.base), batch_size):
        exchange = _exchange(source_ND[rows], basis_DR.to(asked.subject.device))
        for found_N, change in zip(found_CN, (exchange, _placebo(exchange, generator)), strict=True):
            found_N += _logits_with(asked.subject, asked.base.part(rows), location, change).argmax(-1).tolist()
    hits_NCO = np.array(found_CN).T[:, :, None] == asked.token_NO[:, None]
    counts_N13O = (asked.counts_N3[:, None, :, None] == 1) & (asked.token_NO != _NO_TOKEN)[:, None, None]
    return np.where(counts_N13O, hits_NCO[:, :, None], np.nan)


def das(
    subject: Subject,
    pairs: Pairs,
    location: Location,
    *,
    rank: int = 1,
    steps: int = 60,
    batch_size: int = 64,
    seed: int = 0,
) -> torch.Tensor:
    """Orthonormal columns (D, R) whose interchange gives the pairs' targets, found with Adam on the cross-entropy.

    See `lab.probing.instruments.interchange.das`; the first column starts as the difference of means.
    """
    contrast = pairs.contrast(subject).part(range(len(pairs.base)))
    targets = torch.tensor(subject.writer.digit_ids())[torch.from_numpy(pairs.target)]
    start_DR = difference_of_means(*labelled_streams(subject, pairs, location, batch_size))
    return any_interchange.das(
        subject, replace(contrast, outcomes={"target": targets}),
        any_interchange.Location(location.layer, location.site, "q_k"),
        rank=rank, steps=steps, batch_size=batch_size, seed=seed, start_DR=start_DR,
    )  # fmt: skip


def _logits_with(subject: Subject, base: Sums, location: Location, change: Change) -> torch.Tensor:
    """The logits (N, V) at the location's query, if `change` of the residual stream (N, D) there is added to it."""
    at_N1 = base.query_at_BK[:, location.column, None]

    def changed(here_N1D: torch.Tensor) -> torch.Tensor:
        return here_N1D + change(here_N1D[:, 0].float()).to(here_N1D.dtype)[:, None]

    hooks = residual(location.layer, location.site, only_at(at_N1, changed))
    return subject.logits(base, [*hooks, only_logits_at(at_N1)])[:, 0]


def streams(subject: Subject, sums: Sums, location: Location, batch_size: int) -> torch.Tensor:
    """The residual stream (N, D) of each sum at a location."""
    return read_queries(subject, sums, [(location.layer, location.site)], [location.column], batch_size)[0, :, 0]


def labelled_streams(
    subject: Subject, pairs: Pairs, location: Location, batch_size: int
) -> tuple[torch.Tensor, np.ndarray]:
    """The residual streams (2 N, D) of bases and then sources at a location, and their carries into its column."""
    sums = subject.sums([*pairs.base, *pairs.source])
    return streams(subject, sums, location, batch_size), sums.columns.carry[:, location.column]


def _exchange(source_ND: torch.Tensor, basis_DR: torch.Tensor) -> Change:
    def exchange(here_ND: torch.Tensor) -> torch.Tensor:
        return (source_ND.to(here_ND.device) - here_ND) @ basis_DR @ basis_DR.T

    return exchange


def _placebo(change: Change, generator: torch.Generator) -> Change:
    """A change of the same size in a direction drawn for each row."""

    def placebo(here_ND: torch.Tensor) -> torch.Tensor:
        noise_ND = torch.randn(here_ND.shape, generator=generator).to(here_ND.device)
        return noise_ND * (change(here_ND).norm(dim=-1, keepdim=True) / noise_ND.norm(dim=-1, keepdim=True))

    return placebo
