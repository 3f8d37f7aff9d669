"""Stick-breaking attention against the walk that it stands for, and against cases worked out by hand."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.parts.stick_breaking import Downward, sharpened, stick_breaking_weights


def weights(scores: list[float], visible: list[bool] | None = None) -> list[float]:
    seen = torch.tensor(visible or [True] * len(scores))
    return stick_breaking_weights(torch.tensor(scores), seen).tolist()


def test_with_even_chances_the_nearest_token_comes_first():
    """The walk stops at the last token with probability 1/2, at the one before with half of what is left, and so on."""
    assert weights([0, 0, 0]) == pytest.approx([1 / 8, 1 / 4, 1 / 2])


def test_the_nearest_token_that_fits_hides_all_behind_it_and_those_that_do_not_fit_are_passed_by():
    assert weights([30, 30, -30, -30]) == pytest.approx([0, 1, 0, 0], abs=1e-6)


def test_what_lies_behind_a_stop_does_not_count_however_high_it_scores():
    scores = [140.0] * 100_000 + [0.0, 0.0]
    assert weights(scores)[-3:] == pytest.approx([1 / 4, 1 / 4, 1 / 2])
    assert sum(weights(scores)) == pytest.approx(1)


def test_if_no_token_fits_all_weights_are_zero():
    assert weights([-30, -30]) == pytest.approx([0, 0], abs=1e-6)
    assert weights([30, 30], [False, False]) == [0, 0]


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(-8, 8), st.booleans()), min_size=1, max_size=12))
def test_weights_are_the_chances_of_a_walk_from_the_last_token_back(keys):
    scores, visible = map(list, zip(*keys, strict=True))
    going, expected = 1.0, [0.0] * len(keys)
    for place in reversed(range(len(keys))):
        if visible[place]:
            stops = torch.tensor(scores[place], dtype=torch.float64).sigmoid().item()
            expected[place] = going * stops
            going *= 1 - stops
    assert weights(scores, visible) == pytest.approx(expected, abs=1e-5)


def test_a_thousand_tokens_that_do_not_fit_are_passed_by_as_ten_are():
    """The weight of a fitting token depends only on the tokens after it; softmax would share it among all."""
    near, far = ([10.0, *[-12.0] * count] for count in (10, 1000))
    assert weights(near)[0] > 0.999
    assert weights(far)[0] > 0.99


@pytest.mark.parametrize(("score", "near", "far"), [(-1.5, 0.237, 0.0311), (-2, 0.079, 0.000998)])
def test_with_sharpening_the_chance_to_stop_by_mistake_does_not_grow_with_length(score, near, far):
    """If n tokens have score -s, the walk stops at each that it reaches with probability 1 / (1 + (1 + n) ** s)."""
    for count, expected in ((10, near), (1000, far)):
        visible = torch.ones(count, dtype=torch.bool)
        scores = sharpened(torch.full((count,), float(score)), visible)
        assert stick_breaking_weights(scores, visible).sum().item() == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("magnitude", [50.0, 300.0])
def test_large_scores_have_finite_gradients(magnitude):
    scores = torch.tensor([magnitude, -magnitude, magnitude, -magnitude], requires_grad=True)
    found = stick_breaking_weights(scores, torch.tensor([True, True, True, False]))
    assert found.tolist() == pytest.approx([0, 0, 1, 0], abs=1e-6)
    found[0].backward()
    assert scores.grad is not None
    assert scores.grad.isfinite().all()


def test_a_head_that_walks_down_stops_at_the_highest_place_that_fits_below_the_digit_it_writes():
    """4 0 5 0 6 + 1 0 4 9 3 = 0: the token of place 6 writes place 5, so it walks from place 4 down. There 0 and 0 fit,
    as they do not add up to nine; the higher place 5 is not seen, and the lower ones stay behind."""
    places = torch.tensor([[0, 5, 4, 3, 2, 1, 0, 5, 4, 3, 2, 1, 7, 6]])
    fits = torch.tensor([-30.0] * 7 + [30, 30, -30, -30, 30] + [-30, -30])
    walk = Downward.of(places[:, -2:], places, circle=64)
    found = walk.weights(fits.expand(1, 1, 2, -1), torch.ones(1, 1, 2, 14, dtype=torch.bool))[0, 0]
    expected = torch.zeros(2, 14)
    expected[0, 7] = expected[1, 8] = 1  # "=" writes place 6 and begins with place 5
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(-8, 8), st.integers(0, 9)), min_size=2, max_size=12), st.integers(0, 63))
def test_weights_are_the_chances_of_a_walk_from_high_places_to_low_ones_whatever_the_offset(keys, offset):
    scores, places = map(list, zip(*keys, strict=True))
    own, count = 7, len(keys)
    going, expected = 1.0, [0.0] * count
    for key in sorted(range(count), key=lambda key: (-places[key], -key)):
        if places[key] < own - 1:
            below = sum(place < own - 1 for place in places)
            stops = torch.tensor(scores[key] * math.log1p(below), dtype=torch.float64).sigmoid().item()
            expected[key] = going * stops
            going *= 1 - stops
    ids = (torch.tensor([[*places, own]]) + offset) % 64
    walk = Downward.of(ids[:, -1:], ids, 64)
    visible = torch.ones(1, 1, 1, count + 1, dtype=torch.bool)
    found = walk.weights(torch.tensor([*scores, 9.0])[None, None, None], visible)
    assert found.flatten().tolist() == pytest.approx([*expected, 0], abs=1e-5)
