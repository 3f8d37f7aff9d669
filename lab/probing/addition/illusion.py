"""Is a direction that exchanges a carry really the carry? Tests of a subspace beyond its interchange rate.

Interchange along v moves the residual stream by v (v . difference). The rate shows what this does, not what v is: most
of v may be something that no later component reads, and that only correlates with the carry (the interpretability
illusion of Makelov, Lange and Nanda 2023, arXiv 2311.17030). In an adder written by hand, DAS finds such a v with a
rate of 96 % and a |cos| of 0.17 to the carry: most of it is a_{k-1} + b_{k-1} - s_{k-1}, which was read in an earlier
layer. But the difference is a sum of what components wrote (`writes`), which shows where the value v . difference comes
from:

    effect    the effect of exchanging the write of one component at this location. If it is zero, nothing reads the
              write later
    unread    the share of the value that was written by components that have no effect even together
    written   the share of |v|^2 in the span of the differences, between source and base, of what all other components
              wrote. The rest is dormant: it does not differ between sums with and without the carry, and only the patch
              moves it. In wide models with many pairs nothing is dormant, and the test says little
    below     how much v . stream changes with the carry into k - 1, as a share of its change with the carry into k, by
              regression on both carries in uniform sums. It is 0 for the carry. It is about -0.1 for a weighted sum of
              digits that is not a carry yet, because a_{k-1} + b_{k-1} - s_{k-1} = 10 c_k - c_{k-1}, and because, of
              the sums with the same c_k, those with c_{k-1} have lower digits
    gradient  the share of |v|^2 in the span of the margin's gradients at the location. It is small for an illusion if
              what reads the stream is smooth. But if the ReLU that reads the carry is off, it is small even for the
              true direction, so it is only reported and not tested

All of these but `below` are measured with pairs that differ only in the carry (`pairs.carry_only`). The mended subspace
is v without its unread part: its projection on the span of what the components that are read wrote.

The tests can reject a direction, but not prove it. A direction passes all of them if it is the sum of the carry and of
a larger copy of the carry that the same component writes and nothing reads.

Shapes: N pairs or sums, B pairs in both directions, D width, R dimensions of the subspace, U components, S points of a
path, X vectors.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from lab.numbers.statistics import wilson
from lab.probing.addition import interchange as interchanges
from lab.probing.addition.interchange import Location
from lab.probing.addition.pairs import Pairs, operands
from lab.probing.answered import Answered, Runs
from lab.probing.bridge import Subject
from lab.probing.components import Component
from lab.probing.instruments import writes
from lab.probing.instruments.patching import BATCH
from lab.probing.instruments.subspaces import check_basis
from lab.probing.interventions import only_at, residual, take
from lab.probing.measured import Measured, max_abs_over_directions, value_and_interval

MOST = 0.5
"""The smallest lower bound of `rate` and the largest `unread` with which a claim holds."""
LEAST_WRITTEN = 0.4
"""A smaller share of the subspace within what components write counts as dormant."""
BELOW = 0.05
"""The interval of `below` must lie within this distance from 0."""
_SUMS = 1000
"""Number of uniform sums on which `below` is measured."""
_RESAMPLES = 300
NOTHING = 0.1
"""A write with a smaller effect, as a share of that of the whole carry, counts as not read."""
_ENERGY = 0.999
"""The share of the vectors' squared norms that their span must contain."""
_POINTS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Points between base and source at which gradients are computed, because a switch may be off at either end."""


class Writes(NamedTuple):
    """What components wrote to the residual stream of q_k before a location, in carry-only pairs, both directions."""

    components: list[Component]
    """All components that wrote, in the order of writing."""
    effect: Measured
    """The effect of exchanging each component's write at the location; axes carry, component."""
    unread: tuple[Component, ...]
    """Components whose writes have no effect even together."""
    ordinary_ND: torch.Tensor
    """The residual stream at the location for uniform sums."""
    carries_N2: np.ndarray
    """The carries of these sums into columns k and k - 1."""
    difference_UBD: torch.Tensor
    """What each component wrote for the source, minus what it wrote for the base."""
    gradient_XD: torch.Tensor
    """Gradients of the margin, at points between base and source."""

    def read_DX(self) -> torch.Tensor:
        """Orthonormal columns (D, X) that span the differences of those components whose writes are read later; no
        columns if there are no such components."""
        read = [u for u, one in enumerate(self.components) if one not in self.unread]
        return span(self.difference_UBD[read].flatten(0, 1))


PASSED = "passes the tests for the carry"
MENDED = ", mended"
"""What is appended to the name of a subspace to name its mended subspace."""


def _percent(share: float) -> str:
    """A share in percent, cut to the range from 0 to 100, because shares of parts that cancel may lie outside it."""
    return f"{100 * min(1.0, max(0.0, share)):.0f} %"


class Claim(NamedTuple):
    """The claim that a subspace is the carry, and the evidence on it, which the module's docstring explains. All
    numbers are shares; `unread` may lie outside 0 to 1, because what components write may cancel."""

    text: str
    """Which subspace, and where."""
    rate: float
    """The share of cross-digit pairs whose carry it exchanges; it was learned from other pairs."""
    low: float
    """The lower bound of the rate's 95 % interval."""
    other_neighbour: float
    """The share of pairs whose digit moves by one in the wrong direction (`interchange.OUTCOMES`)."""
    best_random: float
    """The best rate of 20 random subspaces with as many dimensions."""
    unread: float
    written: float
    below: float
    below_low: float
    below_high: float
    """`below` with its 95 % interval, by bootstrap over sums."""
    gradient: float
    mended_rate: float
    """The rate of the mended subspace."""

    @property
    def holds(self) -> bool:
        return not self.doubts

    @property
    def doubts(self) -> list[str]:
        """What speaks against the claim; empty if it holds. If it is no better than random, this is the only reason."""
        if self.low <= self.best_random:
            return [f"the best of {interchanges.DRAWS} random subspaces exchanges it in {_percent(self.best_random)}"]
        found = []
        if self.low < MOST:
            found.append(f"in {100 * (1 - self.rate):.0f} % it does not, which may be half of all pairs or more")
        if self.low <= self.other_neighbour:
            found.append(f"in {100 * self.other_neighbour:.0f} % it moves the digit the other way")
        if self.unread > MOST:
            found.append(f"{_percent(self.unread)} of what it exchanges is not read from there on: an illusion")
        elif self.written < LEAST_WRITTEN:
            dormant = _percent(1 - self.written)
            found.append(f"{dormant} of it is dormant, the same with the carry and without it: an illusion")
        if np.isnan(self.below):
            found.append("no carry comes from below column 1, so a sum of digits would pass as well: ask column 2")
        elif not -BELOW <= self.below_low <= self.below_high <= BELOW:
            found.append(
                f"the carry into the column below moves it {self.below:.3f} ({self.below_low:.3f} to "
                f"{self.below_high:.3f}) times as much: about 0 would be the carry, -0.1 a sum of digits"
            )
        if self.mended_rate <= self.best_random:
            found.append("without what is not read, it does no better than random subspaces")
        return found

    def sentence(self) -> str:
        claim = f"{self.text} exchanges the carry in {100 * self.rate:.0f} % of pairs"
        if self.holds:
            checked = f"best of random {100 * self.best_random:.0f} %; {_percent(1 - self.unread)} of it is read"
            return f"{claim} ({checked}): it {PASSED}"
        first, *others = self.doubts
        return f"{claim}, but {first}{f' (and {len(others)} more)' if others else ''}"


class Evidence(NamedTuple):
    """The evidence on a subspace, and the mended subspace."""

    claim: Claim
    cosines: dict[str, float]
    """|cos| of the smallest angle to each of the other subspaces, by name."""
    mended_DR: torch.Tensor


def as_measured(claims: Sequence[Claim], n: int) -> Measured:
    """The numbers of the claims, without intervals; axes claim, measure. `n`: the number of test pairs."""
    value = np.array([claim[1:] for claim in claims], dtype=float)
    axes = {"claim": [claim.text for claim in claims], "measure": list(Claim._fields[1:])}
    unknown = np.full(value.shape, np.nan)
    return Measured("is it the carry?", axes, value, unknown, unknown, np.full(value.shape, n))


def claims_of(measured: Measured) -> list[Claim]:
    """The claims in an array that `as_measured` made."""
    return [Claim(text, *row) for text, row in zip(measured.axes["claim"], measured.value.tolist(), strict=True)]


def examine(
    subject: Subject,
    name: str,
    basis_DR: torch.Tensor,
    location: Location,
    test: Pairs,
    wrote: Writes,
    *,
    compared: dict[str, torch.Tensor] | None = None,
    batch_size: int = 64,
) -> Evidence:
    """The evidence on a subspace at a location.

    Args:
        name: the name of the subspace.
        basis_DR: orthonormal columns.
        location: where it exchanges the carry.
        test: cross-digit pairs from which it was not learned.
        wrote: what `read_writes` found at the location.
        compared: other bases by name.

    Raises ModelError if the basis is not orthonormal.
    """
    check_basis(basis_DR, subject.width)
    read_DX = wrote.read_DX()
    mended_DR = _mended(basis_DR, read_DX)
    rates = _rates(subject, test, location, basis_DR, batch_size)
    low = wilson(round(rates["target"] * len(test.base)), len(test.base)).low
    drawn = interchanges.random_rates(subject, test, location, basis_DR.shape[1], batch_size=batch_size)
    claim = Claim(
        f"{name} at L{location.layer} {location.site}, column {location.column}",
        rates["target"],
        low,
        rates["other neighbour"],
        float(drawn.at(direction="both", outcome="target").value.max()),
        _share_written(basis_DR, wrote, wrote.unread),
        _share_inside(basis_DR, read_DX),
        *below(basis_DR, wrote),
        _share_inside(basis_DR, span(wrote.gradient_XD)),
        _rates(subject, test, location, mended_DR, batch_size)["target"],
    )
    cosines = {other: cosine(basis_DR, other_DR) for other, other_DR in (compared or {}).items()}
    return Evidence(claim, cosines, mended_DR)


@torch.inference_mode()
def read_writes(subject: Subject, pairs: Pairs, location: Location) -> Writes:
    """What components wrote before a location, and which writes are read later.

    `pairs`: carry-only, into the location's column. All of them are run at once; a few dozen are enough. Raises the
    same errors as `Answered.of_right_pairs`, and ModelError if the residual stream is not the sum of the writes.
    """
    answered = Answered.of_right_pairs(subject, pairs, BATCH)
    names = writes.hook_points(subject)
    runs = Runs(answered, slice(None), names, names)
    writes.check_additive(subject, runs.base)
    components = writes.writers(subject, location.layer, location.site)
    here = _Here(subject, answered, runs, location, max(1, BATCH // len(answered)))
    difference_UBD = torch.stack([here.difference(one) for one in components])
    effect = here.effect(difference_UBD, {"component": list(map(str, components))})
    order = max_abs_over_directions(effect.value).argsort(kind="stable")
    together = here.effect(difference_UBD[order].cumsum(0), {"count": list(range(1, len(order) + 1))})
    does_nothing = max_abs_over_directions(together.value) < NOTHING
    # add up writes, the weakest first, until their sum has an effect; if a longer sum has none, writes just cancel
    count = len(order) if does_nothing.all() else int(does_nothing.argmin())
    return Writes(
        components,
        effect,
        tuple(components[u] for u in order[:count]),
        *_ordinary(subject, len(str(pairs.base[0][0])), location),
        difference_UBD,
        here.gradients(difference_UBD.sum(0)),
    )


class _Here:
    """Runs of the base with vectors added to the residual stream of q_k at one location."""

    def __init__(self, subject: Subject, answered: Answered, runs: Runs, location: Location, at_once: int) -> None:
        self._subject, self._contrast, self._runs, self._location = subject, answered, runs, location
        self._at_B1 = answered.contrast.base.query_at_BK[:, location.column, None]
        self._after = range(location.layer, subject.layers)
        self._at_once = at_once

    def difference(self, component: Component) -> torch.Tensor:
        """The source's write minus the base's at q_k, (B, D)."""
        source, base = (writes.written(self._subject, component, run) for run in (self._runs.source, self._runs.base))
        return take(source - base, self._at_B1)[:, 0]

    def effect(self, added_UBD: torch.Tensor, axes: dict[str, list[object]]) -> Measured:
        """The effect of adding each of the vectors."""
        margin_UB = torch.cat([self._margins(part) for part in added_UBD.split(self._at_once)])
        return self._contrast.effects("effect of what a component wrote", axes, margin_UB.T.cpu().numpy()).effect

    def gradients(self, total_BD: torch.Tensor) -> torch.Tensor:
        """The gradients of the margin at points between base and source, (S B, D)."""
        added_SBD = torch.tensor(_POINTS, device=total_BD.device)[:, None, None] * total_BD
        with torch.inference_mode(False), torch.enable_grad():
            added_SBD = added_SBD.clone().requires_grad_()
            parts = [self._margins(part).sum() for part in added_SBD.split(self._at_once)]
            (gradient_SBD,) = torch.autograd.grad(torch.stack(parts).sum(), [added_SBD])
        return gradient_SBD.flatten(0, 1)

    def _margins(self, added_CBD: torch.Tensor) -> torch.Tensor:
        change = only_at(
            self._at_B1.repeat(len(added_CBD), 1), lambda here: here + added_CBD.flatten(0, 1)[:, None].to(here.dtype)
        )
        return self._runs.rerun(
            self._after, residual(self._location.layer, self._location.site, change), len(added_CBD)
        )


def span(vectors_XD: torch.Tensor) -> torch.Tensor:
    """Orthonormal columns (D, R) that span nearly all of the vectors; none if all are zero."""
    _, size_R, rows_RD = torch.linalg.svd(vectors_XD.float().cpu(), full_matrices=False)
    energy_R = size_R.square().cumsum(0)
    if not len(energy_R) or not float(energy_R[-1]):
        return torch.zeros(vectors_XD.shape[1], 0)
    return rows_RD[: int((energy_R < _ENERGY * energy_R[-1]).sum()) + 1].T


def cosine(one_DR: torch.Tensor, other_DR: torch.Tensor) -> float:
    """|cos| of the smallest angle between two subspaces."""
    return float(torch.linalg.matrix_norm(one_DR.cpu().T @ other_DR.cpu(), ord=2).clamp(max=1))


def _share_inside(basis_DR: torch.Tensor, span_DX: torch.Tensor) -> float:
    """The share of a subspace's squared norm that lies within another one."""
    return float((span_DX.T @ basis_DR.cpu()).square().sum() / basis_DR.shape[1])


def _mended(basis_DR: torch.Tensor, read_DX: torch.Tensor) -> torch.Tensor:
    """The basis, projected on the span of the writes that are read later; empty if no write is."""
    span_DX = read_DX.to(basis_DR)
    if not span_DX.shape[1]:
        return basis_DR[:, :0]
    return torch.linalg.qr(span_DX @ (span_DX.T @ basis_DR))[0][:, : span_DX.shape[1]]


def below(basis_DR: torch.Tensor, wrote: Writes) -> tuple[float, float, float]:
    """How much the coordinates change with the carry into k - 1, as a share of their change with the carry into k, and
    the bounds of the interval; nan if all sums have the same carry into k - 1, as for k = 1."""
    if len(np.unique(wrote.carries_N2[:, 1])) < 2:
        return np.nan, np.nan, np.nan
    coordinate_NR = (wrote.ordinary_ND @ basis_DR.cpu()).double().numpy()
    factors_N3 = np.concatenate([wrote.carries_N2, np.ones((len(coordinate_NR), 1))], axis=1)
    draw = np.random.default_rng(0)
    drawn = [np.arange(_SUMS), *draw.integers(0, _SUMS, (_RESAMPLES, _SUMS))]
    ratios = []
    for rows in drawn:
        here_R, lower_R, _ = np.linalg.lstsq(factors_N3[rows], coordinate_NR[rows], rcond=None)[0]
        ratios.append(float(lower_R @ here_R) / max(1e-30, float(here_R @ here_R)))
    value, low, high = value_and_interval(np.array(ratios)).tolist()
    return value, low, high


def _ordinary(subject: Subject, length: int, location: Location) -> tuple[torch.Tensor, np.ndarray]:
    """The residual stream (N, D) of uniform sums at the location, and their carries into k and k - 1, (N, 2)."""
    sums = subject.sums(operands("uniform", length, 0, _SUMS))
    stream_ND = interchanges.streams(subject, sums, location, BATCH)
    return stream_ND, sums.columns.carry[:, [location.column, location.column - 1]]


def _share_written(basis_DR: torch.Tensor, wrote: Writes, some: Sequence[Component]) -> float:
    """The share of the value V^T difference that some of the components wrote."""
    value_UBR = wrote.difference_UBD.cpu() @ basis_DR.cpu()
    total_BR = value_UBR.sum(0)
    share_U = ((value_UBR * total_BR).sum((1, 2)) / total_BR.square().sum().clamp(min=1e-30)).numpy()
    return float(sum(share for share, one in zip(share_U, wrote.components, strict=True) if one in some))


def _rates(
    subject: Subject, test: Pairs, location: Location, basis_DR: torch.Tensor, batch_size: int
) -> dict[str, float]:
    found = interchanges.interchange(subject, test, location, basis_DR, batch_size=batch_size)
    by_outcome = found.at(change="interchange", direction="both").value
    return dict(zip(interchanges.OUTCOMES, by_outcome.tolist(), strict=True))
