"""What the instruments found together, as one circuit: which head looks at which digit, what brings the carry about,
and what tells what.

Arrows between components are paths of the carry (lab/probing/path_patching.py). A head that fetches a digit of the
column itself has none, because the pairs of sums differ in nothing but the carry.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from lab.probing.alignment import Aligned, Alignment, aligned_heads
from lab.probing.components import Component
from lab.probing.measured import Measured

ANSWER = "s_k"
"""The digit that is written."""
_EFFECT = 0.1
"""The smallest effect that is part of the circuit."""
_PARTS = 12
"""The largest number of components."""

Found = Mapping[str, Sequence[Measured]]
"""What each instrument measured, by its name."""


class Arrow(NamedTuple):
    start: str
    """A digit, such as "a_k-1", or a component."""
    end: str
    """A component, or the digit that is written."""
    weight: float
    """Attention, or the effect of the path; from 0 to 1."""


class Circuit(NamedTuple):
    parts: Sequence[Component]
    effects: Mapping[Component, float]
    """How much of a carry a component brings about when it is patched, of those above the threshold."""
    arrows: Sequence[Arrow]

    def __repr__(self) -> str:
        """A line for each arrow, in the order of the layers that they lead to."""
        order = [str(part) for part in self.parts] + [ANSWER]
        arrows = sorted(self.arrows, key=lambda arrow: (order.index(arrow.end), arrow.start))
        return "\n".join(f"{arrow.start} -> {arrow.end} {arrow.weight:.0%}" for arrow in arrows)

    def _repr_svg_(self) -> str:
        """What a notebook shows."""
        from lab.probing.diagram import svg

        return svg(self)

    @property
    def heads(self) -> list[Component]:
        return [part for part in self.parts if part.kind == "head"]

    @property
    def digits(self) -> list[str]:
        """The digits that heads look at, those of a first."""
        return sorted({arrow.start for arrow in self.arrows if arrow.start[1:2] == "_"})


def circuit(found: Found) -> Circuit:
    """The circuit that the measured instruments show; it has no parts where none of them names one."""
    looking, effects, paths = _looking(found), _effects(found), _paths(found)
    weights: dict[Component, float] = dict(effects)
    for one in looking:
        head = Component("head", one.layer, one.head)
        weights[head] = max(weights.get(head, 0.0), one.weight)
    for (start, end), effect in paths.items():
        for part in (start, end):
            if part is not None:
                weights[part] = max(weights.get(part, 0.0), effect)
    chosen = sorted(weights, key=lambda part: -weights[part])[:_PARTS]
    arrows = [Arrow(_digit(one), str(Component("head", one.layer, one.head)), one.weight) for one in looking]
    arrows += [Arrow(str(start), str(end or ANSWER), effect) for (start, end), effect in paths.items()]
    inside = {ANSWER, *map(str, chosen)}
    arrows = [arrow for arrow in arrows if arrow.end in inside and (arrow.start in inside or arrow.start[1:2] == "_")]
    return Circuit(sorted(chosen, key=_order), {part: effects[part] for part in chosen if part in effects}, arrows)


def _order(part: Component) -> tuple[int, bool, int]:
    """From left to right: heads are before the MLP of their layer."""
    return part.layer, part.kind != "head", part.head


def _digit(one: Aligned) -> str:
    return f"{one.number[0]}_k{one.offset:+d}" if one.offset else f"{one.number[0]}_k"


def able(found: Found) -> list[int | str]:
    """The lengths at which the subject gets half of the digits right: what it looks at elsewhere is no part of how it
    adds. All known lengths if competence was not measured."""
    if not found.get("competence"):
        return []
    digits = found["competence"][1]
    return [length for length, value in zip(digits.axes["length"], digits.value, strict=True) if value >= 0.5]


def _looking(found: Found) -> list[Aligned]:
    """Heads and the operand digits that they look at."""
    if not found.get("alignment"):
        return []
    measured = found["alignment"][:3]
    lengths = able(found) or measured[0].axes["length"]
    aligned = aligned_heads(Alignment(*(one.only("length", lengths) for one in measured)))
    return [one for one in aligned if one.number != "sum"]


def _effects(found: Found) -> dict[Component, float]:
    """The effect of each head and MLP that is patched at all tokens: the larger of the two directions."""
    known: dict[Component, float] = {}
    for measured in found.get("patching", ()):
        if {"layer", "place"} <= measured.axes.keys() and measured.name in ("effect of a head", "effect of an MLP"):
            everywhere = np.nan_to_num(np.abs(measured.at(place="everywhere").value)).max(0)
            for place in np.argwhere(everywhere >= _EFFECT):
                layer, *head = map(int, place)
                part = Component("head", layer, *head) if head else Component("mlp", layer)
                known[part] = float(everywhere[tuple(place)])
    return known


def _paths(found: Found) -> dict[tuple[Component, Component | None], float]:
    """Sender, receiver (None: the logits) and the larger effect of both ways, over a receiver's inputs."""
    if not found.get("path_patching"):
        return {}
    measured = found["path_patching"][0]
    names = measured.axes["receiver"]
    heads = {input: len({name for name in names if name.endswith(f".{input}")}) for input in "qkv"}
    effects = np.nan_to_num(np.abs(measured.value)).max(0)
    known: dict[tuple[Component, Component | None], float] = {}
    for row, sender in enumerate(measured.axes["sender"]):
        for column, receiver in enumerate(names):
            if effects[row, column] >= _EFFECT:
                for end in _receiving(receiver, heads):
                    pair = Component.named(sender), end
                    known[pair] = max(known.get(pair, 0.0), float(effects[row, column]))
    return known


def _receiving(name: str, heads: Mapping[str, int]) -> list[Component | None]:
    """All heads of the group where heads share their keys and values; None for the logits."""
    if name == "logits":
        return [None]
    part, _, input = name.partition(".")
    one = Component.named(part)
    shared = heads["q"] // heads[input] if input in ("k", "v") and heads[input] else 1
    return [one._replace(head=one.head * shared + n) for n in range(shared)] if input else [one]
