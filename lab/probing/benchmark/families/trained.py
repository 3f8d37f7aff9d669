"""Adders that were trained, whose circuits were verified by intervention.

Nodes and edges are what experiments/trained_circuits.py finds with `pairs`, which are not those of the benchmark. The
stream of a trained model cannot be rotated, so all seeds give the same model.

In both one-layer models the difference of means at (0, mid) exchanges the carry of all 64 cross-digit pairs that were
tried. In the model of two layers it exchanges 41 % at (1, mid), which is no more than before attention, and the whole
stream there swaps the answer. So this site is listed only because the last MLP reads there, and no direction is known.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from lab.probing.benchmark.known import DIGITS, Adder, Circuit
from lab.probing.bridge import open_model
from lab.probing.components import Component
from lab.probing.interventions import Site
from lab.probing.pairs import Pairs, carry_only


class Verified(NamedTuple):
    """A trained model, and the circuit that was found in it."""

    model: str
    nodes: tuple[str, ...]
    edges: tuple[tuple[str, str], ...]
    carry_site: tuple[int, Site]
    longest: int = DIGITS


VERIFIED = {
    "trained, one layer": Verified(
        "zoo/adds-10-without-locality", ("L0H0", "L0 mlp"), (("L0H0", "L0 mlp"), ("L0 mlp", "logits")), (0, "mid")
    ),
    "trained, one local layer": Verified(
        "zoo/adds-1000",
        ("L0H0", "L0H2", "L0 mlp"),
        (("L0H0", "L0 mlp"), ("L0H2", "L0 mlp"), ("L0 mlp", "logits")),
        (0, "mid"),
    ),
    "trained, two layers": Verified(
        "zoo/adds-4-digits",
        ("L0H0", "L0H1", "L0H3", "L0 mlp", "L1H0", "L1H2", "L1H3", "L1 mlp"),
        (
            ("L0H0", "L0 mlp"),
            ("L0H3", "L0 mlp"),
            ("L0H0", "L1H0.v"),
            ("L0H1", "L1H0.v"),
            ("L0 mlp", "L1H0.v"),
            ("L0H3", "L1H2.v"),
            ("L0 mlp", "L1H2.v"),
            ("L0H1", "L1H3.v"),
            ("L0H3", "L1H3.v"),
            ("L0 mlp", "L1H3.v"),
            ("L1H0", "L1 mlp"),
            ("L1H2", "L1 mlp"),
            ("L1H3", "L1 mlp"),
            ("L1H3", "logits"),
            ("L1 mlp", "logits"),
        ),
        (1, "mid"),
        longest=4,
    ),
}


def pairs() -> Pairs:
    """The pairs with which the circuits were found."""
    return carry_only(4, 1, 24, 100)


def adder(name: str, verified: Verified, seed: int = 0) -> Adder[Circuit]:
    """The trained model with its circuit."""
    circuit = Circuit(
        frozenset(map(Component.named, verified.nodes)),
        frozenset(verified.edges),
        (verified.carry_site,),
        verified.longest,
    )
    subject = open_model(verified.model)
    subject.name = name
    return Adder(subject, circuit)


ADDERS: dict[str, Callable[[int], Adder[Circuit]]] = {
    name: partial(adder, name, verified) for name, verified in VERIFIED.items()
}
