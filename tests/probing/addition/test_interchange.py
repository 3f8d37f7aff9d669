"""Interchange against adders whose carry is one known direction of the stream."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from lab.errors import ModelError, TaskError
from lab.probing.addition import interchange as lab
from lab.probing.addition.interchange import Location, das, interchange, interchange_all
from lab.probing.addition.pairs import Pairs, cross_digit
from lab.probing.benchmark.known import KnownAdder
from lab.probing.components import Site
from tests.probing.known_adders import llama_adder, native_adder

PAIRS = cross_digit(4, 2, 60, seed=0)
TRAIN = cross_digit(4, 2, 128, seed=1)


@pytest.fixture(scope="module", params=[native_adder, llama_adder])
def adder(request: pytest.FixtureRequest) -> KnownAdder:
    return request.param()


def rates(
    adder: KnownAdder, location: Location, basis_DR: torch.Tensor, change: str = "interchange"
) -> dict[str, float]:
    found = interchange(adder, PAIRS, location, basis_DR, batch_size=60).at(change=change, direction="both")
    return dict(zip(lab.OUTCOMES, found.value.tolist(), strict=True))


def test_the_true_direction_gives_the_target_both_ways_wherever_the_carry_is_read(adder: KnownAdder):
    for layer, site in adder.known.carry_sites:
        found = interchange(adder, PAIRS, Location(layer, site, 2), adder.known.carry_D[:, None], batch_size=60)
        assert found.at(change="interchange", outcome="target").value.tolist() == [1, 1, 1]
        assert found.at(change="interchange", outcome="unchanged", direction="both").value == 0
        assert found.at(change="placebo", outcome="target", direction="both").value < 0.3
        both, up, down = found.n[0, :, 0]
        assert both == up + down == 60


def test_the_true_direction_changes_nothing_before_the_carry_is_there_or_after_it_was_read(adder: KnownAdder):
    locations: list[tuple[int, Site]] = [(0, "pre"), (0, "mid"), (1, "post")]
    for layer, site in locations:
        assert rates(adder, Location(layer, site, 2), adder.known.carry_D[:, None])["unchanged"] == 1


def test_the_whole_stream_swaps_the_answer_and_no_stream_leaves_it(adder: KnownAdder):
    location = Location(1, "mid", 2)
    whole = rates(adder, location, torch.eye(adder.width))
    assert whole["swapped answer"] == 1
    assert whole["target"] == 0
    assert rates(adder, location, torch.zeros(adder.width, 0))["unchanged"] == 1
    nowhere = interchange(adder, PAIRS, location, torch.zeros(adder.width, 0)).at(
        direction="both", change="interchange"
    )
    own_digits_differ = [(sum(a) // 100 - sum(b) // 100) % 10 != 0 for a, b in zip(PAIRS.base, PAIRS.source)]  # noqa: B905
    assert nowhere.at(outcome="swapped answer").n == sum(own_digits_differ)


def test_a_change_without_a_direction_makes_neighbours_of_both_sides():
    adder, location = native_adder(), Location(0, "post", 2)
    minus_D = -adder.known.carry_D[:, None]
    assert rates(adder, location, minus_D) == rates(adder, location, adder.known.carry_D[:, None])
    drawn = lab.random_rates(adder, PAIRS, location, batch_size=60).at(direction="both")
    assert drawn.axes["draw"] == list(range(20))
    assert (drawn.value.sum(-1) <= 1 + 1e-9).all()
    assert drawn.at(outcome="target").value.mean() < 0.3
    placebo = rates(adder, location, torch.eye(adder.width), "placebo")
    assert placebo["target"] < 0.5
    assert placebo["other neighbour"] > 0


@pytest.mark.slow
def test_the_other_neighbour_is_on_the_other_side_of_the_digit():
    # digit 2 of 0055 + 0055 is 1; without a carry, as in 0011 + 0012, it would be 0, and the other neighbour of 1 is 2
    asked = lab._Asked.of(native_adder(), Pairs([(55, 55), (11, 12)], [(11, 12), (55, 55)], 2))
    assert asked.token_NO[:, [0, 2, 3]].tolist() == [[0, 1, 2], [1, 0, 9]]


def test_the_answers_own_direction_swaps_it_at_the_end(adder: KnownAdder):
    found = rates(adder, Location(1, "post", 2), adder.known.digit_D[:, None])
    assert found["swapped answer"] == 1
    assert found["target"] == 0


@pytest.mark.parametrize("make", [native_adder, pytest.param(llama_adder, marks=pytest.mark.slow)])
def test_das_leaves_an_orthonormal_basis_and_no_gradient_and_its_rate_carries_over(make: Callable[[], KnownAdder]):
    """Whether what it finds is the carry is another question: tests/probing/instruments/test_illusion.py."""
    adder = make()
    location = Location(0, "post", 2)
    basis_DR = das(adder, TRAIN, location, steps=30, batch_size=64)
    torch.testing.assert_close(basis_DR.T @ basis_DR, torch.eye(1), atol=1e-5, rtol=0)
    assert rates(adder, location, basis_DR)["target"] > 0.8
    assert all(weight.grad is None for weight in adder.bridge.parameters())


@pytest.mark.slow
def test_das_of_two_directions_finds_the_carry_and_not_the_answer_after_it_was_read():
    adder = native_adder()
    basis_DR = das(adder, TRAIN, Location(0, "post", 2), rank=2, steps=30, batch_size=64)
    torch.testing.assert_close(basis_DR.T @ basis_DR, torch.eye(2), atol=1e-5, rtol=0)
    assert rates(adder, Location(0, "post", 2), basis_DR)["target"] > 0.6
    late = Location(1, "post", 2)
    assert rates(adder, late, das(adder, TRAIN, late, steps=10, batch_size=64))["target"] < 0.5


@pytest.mark.slow
def test_a_sweep_has_every_place_with_its_controls_and_keeps_what_it_learned():
    adder = native_adder()
    found = interchange_all(
        adder, 4, layers=[0, 1], sites=["post"], columns=[1], train_pairs=100, test_pairs=40, das_steps=2, batch_size=99
    )
    assert list(found.rates.axes) == ["layer", "site", "column", "subspace", "change", "direction", "outcome"]
    assert set(found.subspaces) == {(Location(layer, "post", 1), name) for layer in (0, 1) for name in lab.LEARNED}
    both = found.rates.at(direction="both", change="interchange")
    assert (both.at(subspace="nothing", outcome="unchanged").value == 1).all()
    target = both.at(outcome="target").at(layer=0, site="post")
    assert (target.at(subspace="difference of means").value > 0.7).all()
    # what reads the carry best is not what carries it
    assert (target.at(subspace="probe").value < 0.5).all()
    assert (target.at(subspace="random").value < 0.3).all()
    assert (both.at(outcome="target", layer=1, site="post", subspace="difference of means").value < 0.1).all()


def test_what_cannot_be_is_refused_in_one_line():
    with pytest.raises(TaskError, match=r"^subspace 'pca': should be one of nothing, whole, random, "):
        interchange_all(native_adder(), 4, subspaces=["pca"])
    with pytest.raises(TaskError, match=r"^column 0 of 4 digits: should be from 1 to 3$"):
        interchange_all(native_adder(), 4, columns=[0])
    with pytest.raises(TaskError, match=r"^subspace 'PCA': should be one of nothing, whole, diff"):
        lab.basis("PCA", torch.zeros(2, 3), np.array([0, 1]))
    adder, pairs = native_adder(), cross_digit(4, 2, 4, seed=0)
    basis_DR = adder.known.carry_D[:, None]
    with pytest.raises(ModelError, match=r"^the basis of a subspace should be orthonormal"):
        lab.interchange(adder, pairs, Location(0, "post", 2), 2 * basis_DR)
    with pytest.raises(TaskError, match=r"^column 1: the pairs are for column 2$"):
        lab.interchange(adder, pairs, Location(0, "post", 1), basis_DR)
