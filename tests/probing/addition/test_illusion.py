"""Directions of the carry, true and illusory, in adders where the true one is known."""

import pytest
import torch

from lab.errors import ModelError
from lab.probing.addition import illusion as lab
from lab.probing.addition.interchange import Location, das
from lab.probing.addition.pairs import carry_only, cross_digit
from lab.probing.benchmark.families import ones_first
from lab.probing.benchmark.known import KnownAdder
from lab.probing.measured import Measured
from tests.probing.known_adders import llama_adder, native_adder

TEST = cross_digit(4, 2, 60, seed=0)
TRAIN = cross_digit(4, 2, 128, seed=1)
AFTER_THE_CARRY, BEFORE_IT, AFTER_THE_SUM = Location(0, "post", 2), Location(0, "mid", 2), Location(1, "post", 2)


@pytest.fixture(scope="module", params=[native_adder, llama_adder])
def adder(request: pytest.FixtureRequest) -> KnownAdder:
    return request.param()


def examined(adder: KnownAdder, name: str, basis_DR: torch.Tensor, location: Location) -> lab.Evidence:
    wrote = lab.read_writes(adder, carry_only(4, 1, 16, seed=0), location)
    truth = {"truth": adder.known.carry_D[:, None]}
    return lab.examine(adder, name, basis_DR, location, TEST, wrote, compared=truth, batch_size=60)


@pytest.mark.slow
def test_the_true_direction_is_the_carry_and_all_of_it_is_read(adder: KnownAdder):
    found = examined(adder, "truth", adder.known.carry_D[:, None], AFTER_THE_CARRY)
    assert found.claim.holds
    assert found.claim.rate == 1
    assert found.claim.unread == pytest.approx(0, abs=1e-3)
    assert found.claim.below_low <= 0.001
    assert found.claim.below_high == pytest.approx(0, abs=0.01)
    assert found.claim.best_random < 0.5
    assert found.claim.sentence().endswith("100 % of it is read): it passes the tests for the carry")


@pytest.mark.slow
def test_what_das_finds_is_the_carry_or_is_said_not_to_be_and_mended_it_is(adder: KnownAdder):
    found = examined(adder, "das", das(adder, TRAIN, AFTER_THE_CARRY, steps=30), AFTER_THE_CARRY)
    assert found.claim.rate > 0.8
    assert (found.cosines["truth"] > 0.9) == found.claim.holds
    # here it is an illusion: nearly all of it is a_{k-1} + b_{k-1} - s_{k-1}, which the carry's MLP has read already
    assert found.cosines["truth"] < 0.3
    assert found.claim.unread > 0.9
    assert found.claim.gradient < 0.1
    assert "is not read from there on: an illusion" in found.claim.sentence()
    assert lab.cosine(found.mended_DR, adder.known.carry_D[:, None]) > 0.99
    assert found.claim.mended_rate == 1


@pytest.mark.slow
def test_a_direction_at_a_site_before_the_carry_is_computed_is_named_as_such():
    adder = native_adder()
    found = examined(adder, "das", das(adder, TRAIN, BEFORE_IT, steps=30), BEFORE_IT)
    assert found.claim.rate > 0.6
    assert found.claim.below == pytest.approx(-0.1, abs=0.02)
    assert found.claim.unread < 0.5
    assert "times as much: about 0 would be the carry" in found.claim.sentence()


@pytest.mark.slow
def test_digits_that_heads_of_a_later_layer_copy_are_not_taken_for_the_carry():
    adder = ones_first.ADDERS["ones first, late"](1)
    location = Location(1, "mid", 2)  # heads of layer 1 have brought the digits, and its MLP has not added them yet
    found = examined(adder, "das", das(adder, TRAIN, location, steps=30), location)
    assert found.claim.rate > 0.6
    assert found.claim.below == pytest.approx(-0.1, abs=0.02)
    assert "times as much: about 0 would be the carry" in found.claim.sentence()


def test_an_idle_copy_of_the_carry_that_pushes_a_dormant_digit_is_an_illusion_and_the_truth_is_none():
    """The direction of Makelov, Lange and Nanda: the value of one direction, which nothing reads, is added along
    another one, which is read but does not differ with the carry."""
    adder = ones_first.ADDERS["ones first, idle carry beside"](1)
    way_D = 0.62 * unit(adder.known.directions["idle carry"]) + 0.74 * unit(adder.known.directions["digit"])
    illusion = examined(adder, "illusion", unit(way_D)[:, None], AFTER_THE_CARRY)
    assert illusion.cosines["truth"] < 0.05
    assert illusion.claim.written < lab.LEAST_WRITTEN
    found_by_das = illusion.claim._replace(rate=0.9, low=0.8)  # as by a direction near this one that moves more digits
    assert found_by_das.doubts == [f"{100 * (1 - illusion.claim.written):.0f} % of it is dormant, {SAME}: an illusion"]
    truth = examined(adder, "truth", adder.known.carry_D[:, None], AFTER_THE_CARRY)
    assert truth.claim.written > lab.LEAST_WRITTEN  # a half, because the same MLP writes the idle copy
    assert truth.claim.holds


SAME = "the same with the carry and without it"


def unit(one_D: torch.Tensor) -> torch.Tensor:
    return one_D / one_D.norm()


@pytest.mark.parametrize(
    ("figures", "doubt"),
    [
        ({"rate": 0.58, "low": 0.48}, "in 42 % it does not, which may be half of all pairs or more"),
        (
            {"below": float("nan"), "below_low": float("nan"), "below_high": float("nan")},
            "no carry comes from below column 1, so a sum of digits would pass as well: ask column 2",
        ),
        ({"low": 0.6, "other_neighbour": 0.6}, "in 60 % it moves the digit the other way"),
        (
            {"below": -0.1, "below_low": -0.12, "below_high": -0.08},
            "the carry into the column below moves it -0.100 (-0.120 to -0.080) times as much: about 0 would be the "
            "carry, -0.1 a sum of digits",
        ),
        ({"mended_rate": 0.2}, "without what is not read, it does no better than random subspaces"),
    ],
)
def test_a_rate_that_controls_explain_is_doubted(figures, doubt):
    good = lab.Claim("one", 0.9, 0.8, 0, 0.2, 0, 1, -0.01, -0.03, 0.01, 1, 0.9)
    assert good.holds
    assert good._replace(**figures).doubts == [doubt]


def test_in_column_1_not_even_the_true_direction_can_be_told_from_a_sum_of_digits():
    adder, location = native_adder(), Location(0, "post", 1)
    wrote = lab.read_writes(adder, carry_only(4, 0, 8, seed=0), location)
    found = lab.examine(adder, "truth", adder.known.carry_D[:, None], location, cross_digit(4, 1, 60, seed=0), wrote)
    assert found.claim.rate == 1
    assert found.claim.doubts == [
        "no carry comes from below column 1, so a sum of digits would pass as well: ask column 2"
    ]


def test_a_direction_after_the_carry_was_read_is_no_better_than_random_ones():
    adder = native_adder()
    found = examined(adder, "truth", adder.known.carry_D[:, None], AFTER_THE_SUM)
    assert found.claim.rate == 0
    assert not found.claim.holds
    assert "random subspaces" in found.claim.sentence()


def test_writes_add_up_to_the_stream_and_only_read_ones_have_an_effect(adder: KnownAdder):
    wrote = lab.read_writes(adder, carry_only(4, 1, 8, seed=0), AFTER_THE_CARRY)
    assert [str(one) for one in wrote.components] == ["L0 pre", *(f"L0H{head}" for head in range(5)), "L0 mlp"]
    assert wrote.effect.at(component="L0 mlp").value.tolist() == pytest.approx([1, 1], abs=0.02)
    assert {str(one) for one in wrote.unread} == {"L0 pre", *(f"L0H{head}" for head in range(5))}
    assert lab.below(adder.known.carry_D[:, None], wrote) == pytest.approx((0, 0, 0), abs=0.01)


def test_heads_that_do_not_add_up_are_refused_in_one_line():
    adder = native_adder()
    written_TD = torch.arange(adder.writer.tokens)[:, None] * adder.known.directions["decoy 0"]
    adder.bridge.add_hook(
        "blocks.0.hook_attn_out", lambda added_BTD, hook: added_BTD + written_TD[: added_BTD.shape[1]]
    )
    with pytest.raises(ModelError, match=r"^native adder: heads of layer 0 do not sum to what its attention writes"):
        lab.read_writes(adder, carry_only(4, 1, 8, seed=0), AFTER_THE_CARRY)


def test_spans_and_angles_by_hand():
    assert lab.span(torch.tensor([[3.0, 0, 0], [0, 4.0, 0], [3.0, 4.0, 0]])).shape == (3, 2)
    assert lab.span(torch.zeros(2, 3)).shape == (3, 0)
    assert lab.cosine(torch.tensor([[1.0], [0]]), torch.tensor([[0.6], [0.8]])) == pytest.approx(0.6)


def test_claims_are_kept_as_arrays_and_come_back():
    claims = [
        lab.Claim("one", 0.9, 0.8, 0, 0.2, 0.1, 1, 0, 0, 0, 0.3, 0.9),
        lab.Claim("two", 0.9, 0.8, 0, 0.2, 0.9, 1, -0.1, -0.12, -0.09, 0, 1),
    ]
    again = lab.claims_of(Measured.from_json(lab.as_measured(claims, 60).to_json()))
    assert again == claims
    assert [claim.holds for claim in again] == [True, False]
    assert again[1].sentence() == (
        "two exchanges the carry in 90 % of pairs, but 90 % of what it exchanges is not read from there on: an "
        "illusion (and 1 more)"
    )
