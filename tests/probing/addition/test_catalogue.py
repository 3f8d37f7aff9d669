from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
import torch

from lab.probing.addition.catalogue import Session
from lab.probing.addition.interchange import LEARNED, Interchanged, Location
from lab.probing.components import Site
from lab.probing.measured import Measured

RATES = [0.9, 0.7, 0.6, 0.5]
"""The rate at which every subspace exchanges the carry, by layer."""


class Told(Session):
    """A session whose subspaces are the carry in some layers and illusions in all others."""

    def __init__(self, true_in: set[int], sites: Sequence[Site] = ("post",)) -> None:
        self.subject, self.true_in, self.examined = None, true_in, []
        axes = {
            "layer": range(len(RATES)), "site": sites, "column": [2], "subspace": LEARNED,
            "change": ["interchange"], "direction": ["both"], "outcome": ["target"],
        }  # fmt: skip
        shape = [len(labels) for labels in axes.values()]
        rate = np.array(RATES).reshape([-1, *[1] * (len(shape) - 1)]) * np.ones(shape)
        locations = [Location(layer, site, 2) for layer in range(len(RATES)) for site in sites]
        subspaces = {
            (location, name): SimpleNamespace(basis_DR=torch.eye(2)) for location in locations for name in LEARNED
        }
        self.interchanged = Interchanged(Measured("rate", axes, rate, rate, rate, rate), subspaces)

    def _examined(self, location: Location, name: str):
        self.examined.append(location)
        claim = SimpleNamespace(holds=location.layer in self.true_in, rate=RATES[location.layer])
        return {name: SimpleNamespace(claim=claim)}


def test_a_subspace_that_is_an_illusion_where_its_rate_is_highest_is_examined_at_the_next_places():
    session = Told(true_in={1, 2})
    assert session.evidence.keys() == {(Location(1, "post", 2), name) for name in LEARNED}
    assert session.examined == [Location(layer, "post", 2) for _ in LEARNED for layer in (0, 1)]
    assert session.carry.layer == 1


def test_of_illusions_the_one_with_the_highest_rate_is_kept_after_three_places():
    session = Told(true_in={3})
    assert session.evidence.keys() == {(Location(0, "post", 2), name) for name in LEARNED}
    assert session.examined == [Location(layer, "post", 2) for _ in LEARNED for layer in (0, 1, 2)]
    assert session.carry.layer == 0


def test_what_leaves_a_layer_and_enters_the_next_is_one_location():
    session = Told(true_in=set(), sites=["pre", "post"])
    assert len(session.evidence) == len(LEARNED)
    assert session.examined == [Location(*at, 2) for _ in LEARNED for at in ((0, "pre"), (0, "post"), (1, "post"))]
