"""The instruments of additions by name, as `lab probe` runs them on a model with the sums of a config, and those that
know no task, on pairs of sums that differ in one carry."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial

import numpy as np

from lab.errors import ModelError
from lab.probing import catalogue
from lab.probing.addition import (
    ablation,
    alignment,
    head_contents,
    helix,
    heuristics,
    illusion,
    interchange,
    probes,
    surgery,
)
from lab.probing.addition.alignment import Aligned
from lab.probing.addition.columns import ColumnPairs
from lab.probing.addition.pairs import Pairs, carry_only, cross_digit, operands
from lab.probing.addition.positions import Sums
from lab.probing.bridge import Subject
from lab.probing.catalogue import EDGE_PAIRS, FEW_LAYERS, patterns, strongest_heads
from lab.probing.components import Component
from lab.probing.config import ProbeConfig
from lab.probing.instruments import lenses
from lab.probing.instruments.subspaces import Subspace
from lab.probing.measured import Measured

_TRIED_LOCATIONS = 3
"""Largest number of locations at which a learned subspace is tested, those with the highest rates first: it may be an
illusion at the best location, and the carry at the next one."""
_OPENED = 3
"""Number of heads whose contents are read."""


class Session:
    """A model, the sums that it is asked, and results that several instruments share."""

    def __init__(self, subject: Subject, config: ProbeConfig) -> None:
        self.subject, self.config, self.batch_size = subject, config, config.batch_size
        self.column, self.seed = config.sums.column, config.seed

    def sums_of(self, length: int, count: int | None = None) -> Sums:
        """Sums of a length. `count`: how many; `sums.per_length` of the config if not given."""
        asked = self.config.sums
        return self.subject.sums(operands(asked.stratum, length, self.seed, count or asked.per_length))

    @cached_property
    def by_length(self) -> dict[int | str, Sums]:
        return {length: self.sums_of(length) for length in self.config.sums.lengths}

    @cached_property
    def trained(self) -> Sums:
        return self.sums_of(self.config.sums.trained)

    @cached_property
    def probed(self) -> Sums:
        return self.sums_of(self.config.sums.trained, self.config.sums.probed)

    @cached_property
    def unprobed(self) -> Sums:
        """Sums that are not among `probed`."""
        asked = self.config.sums
        drawn = self.sums_of(asked.trained, asked.probed + asked.per_length)
        return drawn.part(slice(asked.probed, None))

    @cached_property
    def same_layout(self) -> Sums:
        """Those of `trained` whose answers have the most frequent number of digits, so that tokens can be compared by
        position."""
        answers = [len(str(a + b)) for a, b in self.trained.numbers]
        most = max(set(answers), key=answers.count)
        return self.subject.sums([pair for pair, n in zip(self.trained.numbers, answers, strict=True) if n == most])

    def pairs_of(self, count: int, stream: int) -> Pairs:
        """Pairs that differ only in the carry into the column. `stream`: a different number draws different pairs."""
        return carry_only(self.config.sums.trained, self.column - 1, count, self.seed + stream)

    @cached_property
    def pairs(self) -> Pairs:
        return self.pairs_of(self.config.sums.pairs, 0)

    @cached_property
    def discovery_pairs(self) -> Pairs:
        """The pairs on which heads and MLPs are chosen; they are then measured on `pairs`."""
        return self.pairs_of(self.config.sums.pairs, 10)

    @cached_property
    def edge_pairs(self) -> Pairs:
        """The pairs on which edges are attributed."""
        return self.pairs.part(slice(EDGE_PAIRS))

    @cached_property
    def aligned(self) -> list[Aligned]:
        """The heads that attend to the digits of one place, at the length that the model can add."""
        return alignment.aligned_heads(alignment.alignment(self.subject, {self.config.sums.trained: self.trained}))

    @cached_property
    def edge_test_pairs(self) -> Pairs:
        """The pairs on which circuits of edges are tested."""
        return self.pairs_of(EDGE_PAIRS, 1)

    @property
    def few_layers(self) -> range:
        return range(0, self.subject.layers, -(-self.subject.layers // FEW_LAYERS))

    @cached_property
    def interchanged(self) -> interchange.Interchanged:
        asked = self.config.sums
        return interchange.interchange_all(
            self.subject, asked.trained, layers=self.few_layers, columns=[self.column], train_pairs=asked.pairs,
            test_pairs=asked.pairs, batch_size=self.batch_size, seed=self.seed,
        )  # fmt: skip

    @cached_property
    def evidence(self) -> dict[tuple[interchange.Location, str], illusion.Evidence]:
        """The evidence on each kind of learned subspace, and on the same subspace without the part that nothing reads
        ("das, mended"). The `_TRIED_LOCATIONS` locations with the highest rates are tried in turn; the evidence is that
        of the first one where the claim holds, or of the best one if the claim holds at none."""
        rates, subspaces = self.interchanged
        found: dict[tuple[interchange.Location, str], illusion.Evidence] = {}
        for name in interchange.LEARNED:
            locations = [location for location, other in subspaces if other == name]
            # the stream that enters a layer is the one that leaves the layer before
            same = {one._replace(layer=one.layer + 1, site="pre") for one in locations if one.site == "post"}
            distinct = [one for one in locations if one not in same]
            ranked = sorted(distinct, key=lambda location: -float(_target_rate(rates, location, name)))
            tried = []
            for location in ranked[:_TRIED_LOCATIONS]:
                tried.append({(location, subspace): one for subspace, one in self._examined(location, name).items()})
                if any(one.claim.holds for one in tried[-1].values()):
                    tried = tried[-1:]
                    break
            found |= tried[0]
        return found

    def _examined(self, location: interchange.Location, name: str) -> dict[str, illusion.Evidence]:
        """The evidence on a subspace at a location, and on the same subspace without the part that nothing reads, by
        name."""
        asked, (_, subspaces) = self.config.sums, self.interchanged
        test = cross_digit(asked.trained, self.column, asked.pairs, self.seed + 2)  # the location was chosen on others
        wrote = illusion.read_writes(self.subject, self.edge_pairs, location)
        others = {other: subspaces[location, other].basis_DR for other in interchange.LEARNED if other != name}
        examine = partial(
            illusion.examine, self.subject, location=location, test=test, wrote=wrote, compared=others,
            batch_size=self.batch_size,
        )  # fmt: skip
        found = {name: examine(name=name, basis_DR=subspaces[location, name].basis_DR)}
        if found[name].mended_DR.shape[1]:
            mended = name + illusion.MENDED
            found[mended] = examine(name=mended, basis_DR=found[name].mended_DR)
        return found

    @cached_property
    def carry(self) -> surgery.CarrySite:
        """Where the carry is: the subspace that exchanges it at the highest rate, of those that pass the tests of
        `illusion` if any do. The tests need a model whose writes sum to the residual stream; for other models, only the
        rate counts."""
        rates, subspaces = self.interchanged
        try:
            found = {key: (one.claim.holds, one.claim.rate) for key, one in self.evidence.items()}
        except ModelError:
            found = {key: (False, float(_target_rate(rates, *key))) for key in subspaces}
        location, name = max(found, key=lambda key: found[key])
        return surgery.CarrySite(
            location.layer, location.site, subspaces.get((location, name)) or self._mended(location, name)
        )

    def _mended(self, location: interchange.Location, name: str) -> Subspace:
        asked = self.config.sums
        train, _ = interchange.pairs_for(asked.trained, self.column, asked.pairs, asked.pairs, self.seed)
        stream_ND, carry_N = interchange.labelled_streams(self.subject, train, location, self.batch_size)
        basis_DR = self.evidence[location, name.removesuffix(illusion.MENDED)].mended_DR
        return Subspace.of(basis_DR.to(stream_ND), stream_ND, carry_N)

    @property
    def facts(self) -> list[str]:
        """What a reader of the page should know about the model and the sums."""
        asked = self.config.sums
        digits = ", ".join(map(str, asked.lengths))
        return [
            f"{self.subject.layers} layers of {self.subject.heads} heads, width {self.subject.width}",
            f"{asked.per_length} sums ({asked.stratum}) at each of {digits} digits; {asked.pairs} pairs of sums",
            f"Instruments of one length ask sums of {asked.trained} digits, about column {asked.column} (0: the ones)",
            "A claim needs a causal effect and its controls: probes, attention, lenses and attributions are only hints",
        ]

    def attention(self, heads: Sequence[Component] = ()) -> list[tuple[str, list[str], list[str], np.ndarray]]:
        """The attention of heads to a few sums; see `catalogue.patterns`."""
        asked = self.trained.numbers[: self.config.examples]
        shown = [patterns(self.subject, self.subject.sums([numbers]), heads) for numbers in asked]
        return [(f"{a} + {b}", *one[1:]) for (a, b), one in zip(asked, shown, strict=True)]


def _target_rate(rates: Measured, location: interchange.Location, subspace: str) -> np.ndarray:
    labels = {**location._asdict(), "subspace": subspace, "change": "interchange", "direction": "both"}
    return rates.at(**labels, outcome="target").value


def _alignment(session: Session) -> list[Measured]:
    by_place = alignment.alignment(session.subject, session.by_length, "place", session.batch_size)
    by_left = alignment.alignment(session.subject, session.by_length, "left", session.batch_size)
    return [*by_place, by_left.attention._replace(name="alignment counted from the left: attention")]


def _ablation(session: Session) -> list[Measured]:
    groups = [(one,) for one in session.subject.components]
    found = []
    for replacement in ("mean", "resample"):
        lost = ablation.ablate(session.subject, session.same_layout, groups, replacement, "queries", session.batch_size)
        found += [part._replace(name=f"{part.name} ({replacement} ablation)") for part in lost]
    return found


def _head_contents(session: Session) -> list[Measured]:
    """The contents of the heads that have the largest effects on the discovery pairs. Directions are learned on half of
    the sums, and measured on the other half."""
    subject, heads, half = session.subject, strongest_heads(session, _OPENED), len(session.probed) // 2
    train, test = session.probed.part(slice(0, half)), session.probed.part(slice(half, None))
    found = head_contents.contents(subject, heads, [session.column], train, test, session.batch_size)
    directions = {head: found.directions[head, session.column] for head in heads}
    effect = head_contents.exchange(subject, session.pairs, directions, session.batch_size).effect
    return [found.explained, found.steps, effect, found.lead, found.nested]


def _probes(session: Session) -> list[Measured]:
    columns = range(session.config.sums.trained)
    found = probes.probe(session.subject, session.probed, columns=columns, batch_size=session.batch_size)
    return [part._replace(name=f"probe: {part.name.replace('_', ' ')}") for part in found]


def _illusion(session: Session) -> list[Measured]:
    claims = [one.claim for one in session.evidence.values()]
    return [illusion.as_measured(claims, session.config.sums.pairs)]


def _surgery(session: Session) -> list[Measured]:
    aligned = alignment.one_hot(session.aligned)
    return [*surgery.surgery(session.subject, session.by_length, aligned, session.carry, session.batch_size)]


def _helix(session: Session) -> list[Measured]:
    return [*helix.helix(
        session.subject, session.probed, session.unprobed, session.column,
        layers=session.few_layers, batch_size=session.batch_size, seed=session.seed,
    )]  # fmt: skip


def _heuristics(session: Session) -> list[Measured]:
    found = heuristics.heuristics(
        session.subject, session.probed, session.column, batch_size=session.batch_size, seed=session.seed
    )
    return [found.matched, found.by_family, found.digits]


INSTRUMENTS: Mapping[str, Callable[[Session], list[Measured]]] = {
    **catalogue.INSTRUMENTS,
    "competence": lambda session: surgery.vanilla(session.subject, session.by_length, session.batch_size),
    "alignment": _alignment,
    "destinations": lambda session: [*alignment.destinations(session.subject, session.by_length, session.batch_size)],
    "ablation": _ablation,
    "head_contents": _head_contents,
    "probes": _probes,
    "interchange": lambda session: [session.interchanged.rates],
    "illusion": _illusion,
    "logit_lens": lambda session: [
        *lenses.logit_lens(session.subject, ColumnPairs(session.trained), batch_size=session.batch_size)
    ],
    "logit_attribution": lambda session: [
        lenses.direct_attribution(session.subject, ColumnPairs(session.trained), batch_size=session.batch_size)
    ],
    "helix": _helix,
    "heuristics": _heuristics,
    "surgery": _surgery,
}
"""Where additions ask more, their own instrument has the place of the general one."""
