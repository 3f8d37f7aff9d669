"""Puts together as one circuit what several instruments found.

Arrows between components are paths of the carry (lab/probing/instruments/path_patching.py). A head that fetches a digit
of column k itself has no such arrow, because this digit is the same in both sums of a pair. So an arrow from a digit to
a head means that the head attends to it, not that the digit is used.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from lab.probing.addition.alignment import Aligned, Alignment, aligned_heads
from lab.probing.components import Component
from lab.probing.measured import Measured
from lab.probing.report.circuit import Arrow, Circuit
from lab.probing.report.telling import told

_EFFECT = 0.1
"""Components and paths with smaller effects are not part of the circuit."""
_PARTS = 12
"""The largest number of components."""

Found = Mapping[str, Sequence[Measured]]
"""What each instrument measured, by its name."""


def circuit(found: Found) -> Circuit:
    """The circuit that the instruments found. It has no parts if none of them found any."""
    looking, effects, paths = _looking(found), _effects(found), _paths(found)
    weights: dict[Component, float] = {part: abs(effect) for part, effect in effects.items()}
    for one in looking:
        head = Component("head", one.layer, one.head)
        weights[head] = max(weights.get(head, 0.0), one.weight)
    for (start, end), effect in paths.items():
        for part in (start, end):
            if part is not None:
                weights[part] = max(weights.get(part, 0.0), abs(effect))
    chosen = sorted(weights, key=lambda part: -weights[part])[:_PARTS]
    arrows = [Arrow(_digit(one), str(Component("head", one.layer, one.head)), one.weight) for one in looking]
    measured = [one for name in ("patching", "path_patching") for one in list(found.get(name, ()))[:1]]
    what = "carry" if all("carry" in one.axes for one in measured) else "answer"
    written = Circuit([], {}, [], what).written
    arrows += [Arrow(str(start), str(end or written), effect) for (start, end), effect in paths.items()]
    inside = {written, *map(str, chosen)}
    arrows = [arrow for arrow in arrows if arrow.end in inside and (arrow.start in inside or arrow.start[1:2] == "_")]
    shown = {part: effects[part] for part in chosen if part in effects}
    return Circuit(sorted(chosen, key=_order), shown, arrows, what)


def _order(part: Component) -> tuple[int, bool, int]:
    """From left to right; heads come before the MLP of their layer."""
    return part.layer, part.kind != "head", part.head


def _digit(one: Aligned) -> str:
    return f"{one.number[0]}_k{one.offset:+d}" if one.offset else f"{one.number[0]}_k"


def _competent_lengths(found: Found) -> list[int | str]:
    """The lengths at which the subject gets at least half of the digits right; empty if competence was not measured.
    What it attends to at other lengths does not show how it adds."""
    if not found.get("competence"):
        return []
    digits = found["competence"][1]
    if "length" not in digits.axes:
        return []
    return [length for length, value in zip(digits.axes["length"], digits.value, strict=True) if value >= 0.5]


def _looking(found: Found) -> list[Aligned]:
    """The heads that attend to digits of the operands."""
    if not found.get("alignment"):
        return []
    measured = found["alignment"][:3]
    lengths = _competent_lengths(found) or measured[0].axes["length"]
    aligned = aligned_heads(Alignment(*(one.only("length", lengths) for one in measured)))
    return [one for one in aligned if one.number != "sum"]


def _effects(found: Found) -> dict[Component, float]:
    """The effect of patching each head and MLP at all tokens, as it is told; a component with a negative effect works
    against the carry."""
    known: dict[Component, float] = {}
    for measured in found.get("patching", ()):
        if {"layer", "place"} <= measured.axes.keys() and measured.name in ("effect of a head", "effect of an MLP"):
            everywhere = told(measured.at(place="everywhere"))
            for index in np.argwhere(np.abs(everywhere) >= _EFFECT):
                layer, *head = map(int, index)
                part = Component("head", layer, *head) if head else Component("mlp", layer)
                known[part] = float(everywhere[tuple(index)])
    return known


def _paths(found: Found) -> dict[tuple[Component, Component | None], float]:
    """The effect of the path from each sender to each receiver (None: the logits): the largest one over both directions
    of the carry and all inputs of the receiver."""
    if not found.get("path_patching"):
        return {}
    measured = found["path_patching"][0]
    names = measured.axes["receiver"]
    effects, alone = told(measured), _effects(found)
    known: dict[tuple[Component, Component | None], float] = {}
    for row, sender in enumerate(measured.axes["sender"]):
        for column, receiver in enumerate(names):
            if abs(effects[row, column]) >= _EFFECT:
                for end in _receiving(receiver, alone):
                    pair = Component.named(sender), end
                    known[pair] = max(known.get(pair, 0.0), float(effects[row, column]), key=abs)
    return known


def _receiving(name: str, alone: Mapping[Component, float]) -> Sequence[Component | None]:
    """The components that a receiver belongs to; None stands for the logits. If heads share the keys and values, it is
    those that have an effect when patched alone, or all of them if none has."""
    if name == "logits":
        return [None]
    first, _, last = name.partition(".")[0].partition("-")
    one = Component.named(first)
    heads = [one._replace(head=head) for head in range(one.head, int(last or one.head) + 1)]
    return [head for head in heads if head in alone] or heads
