"""Adders that were trained, whose circuits were verified by intervention.

experiments/trained_circuits.py found the circuits (trained.yaml), on the pairs that `pairs` returns; the benchmark uses
other pairs. The residual stream of a trained model is not rotated, so all seeds give the same model.

In both one-layer models, exchanging the difference of means at (0, mid) exchanges the carry of all 64 cross-digit pairs
that were tried. In the two-layer model, it exchanges the carry in 41 % of them at (1, mid), no more than before
attention, and exchanging the whole stream there swaps the answer. This site is listed only because the last MLP reads
the stream there; a direction of the carry is not known.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from lab.probing.addition.pairs import Pairs, carry_only
from lab.probing.benchmark.known import Adder, Circuit
from lab.probing.bridge import open_model
from lab.probing.components import Component

VERIFIED: dict[str, dict[str, Any]] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
"""The models, and the circuits that were found in them."""


def pairs() -> Pairs:
    """The pairs with which the circuits were found."""
    return carry_only(4, 1, 24, 100)


def adder(name: str, seed: int = 0) -> Adder[Circuit]:
    """The trained model of that name with its circuit."""
    found = VERIFIED[name]
    circuit = Circuit(
        frozenset(map(Component.named, found["nodes"])),
        frozenset((sender, receiver) for receiver, senders in found["edges"].items() for sender in senders),
        (tuple(found["carry_site"]),),
        found["longest"],
    )
    subject = open_model(found["model"])
    subject.name = name
    return Adder(subject, circuit)


ADDERS: dict[str, Callable[[int], Adder[Circuit]]] = {name: partial(adder, name) for name in VERIFIED}
