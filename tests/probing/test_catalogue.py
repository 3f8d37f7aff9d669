from types import SimpleNamespace

import numpy as np
import torch

from lab.probing.catalogue import Session
from lab.probing.instruments.interchange import LEARNED, Interchanged, Place
from lab.probing.measured import Measured

RATES = [0.9, 0.7, 0.6, 0.5]
"""The rate at which every subspace exchanges the carry, by layer."""


class Told(Session):
    """A session whose subspaces are the carry in some layers and illusions in all others."""

    def __init__(self, true_in: set[int]) -> None:
        self.subject, self.true_in = None, true_in
        axes = {
            "layer": range(len(RATES)), "site": ["post"], "column": [2], "subspace": LEARNED,
            "change": ["interchange"], "direction": ["both"], "outcome": ["target"],
        }  # fmt: skip
        rate = np.tile(np.array(RATES)[:, None], len(LEARNED)).reshape([len(labels) for labels in axes.values()])
        places = [Place(layer, "post", 2) for layer in range(len(RATES))]
        subspaces = {(place, name): SimpleNamespace(basis_DR=torch.eye(2)) for place in places for name in LEARNED}
        self.interchanged = Interchanged(Measured("rate", axes, rate, rate, rate, rate), subspaces)

    def _examined(self, place: Place, name: str):
        claim = SimpleNamespace(holds=place.layer in self.true_in, rate=RATES[place.layer])
        return {name: SimpleNamespace(claim=claim)}


def test_a_subspace_that_is_an_illusion_where_its_rate_is_highest_is_examined_at_the_next_places():
    session = Told(true_in={1, 2})
    assert list(session.evidence) == [(Place(layer, "post", 2), name) for name in LEARNED for layer in (0, 1)]
    assert session.carry.layer == 1
    assert Told(true_in={0}).evidence.keys() == {(Place(0, "post", 2), name) for name in LEARNED}


def test_of_illusions_the_one_with_the_highest_rate_is_taken_after_three_places():
    session = Told(true_in={3})
    assert {place.layer for place, _ in session.evidence} == {0, 1, 2}
    assert session.carry.layer == 0
