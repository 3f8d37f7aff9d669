"""Patching on adders whose circuit is known, and against TransformerLens' own sweeps of a model drawn at random."""

import numpy as np
import pytest
import torch
from transformer_lens import patching as stock

from lab.errors import ModelError, TaskError
from lab.numbers.columns import Columns
from lab.probing.addition import carries
from lab.probing.addition.carries import PLACES
from lab.probing.addition.pairs import Pairs, carry_only, cross_digit, same_carry
from lab.probing.answered import Answered, Runs
from lab.probing.benchmark.known import DIGITS
from lab.probing.bridge import Subject
from lab.probing.components import SITES, Component
from lab.probing.contrast import EVERYWHERE
from lab.probing.instruments.attribution import screen
from lab.probing.instruments.patching import (
    Patch,
    margins,
    patch,
    patch_head_pairs,
    patch_heads,
    patch_mlps,
    patch_residuals,
)
from lab.probing.instruments.path_patching import patch_paths, receivers
from tests.probing.known_adders import ADDERS, BY_HAND, EQUAL, native_adder, random_model


@pytest.fixture(scope="module", params=ADDERS)
def adder(request):
    return ADDERS[request.param]()


@pytest.fixture(scope="module", name="random_model")
def drawn_once() -> Subject:
    return random_model()


def test_one_pair_worked_out_by_hand(adder):
    heads, gap = patch_heads(adder, BY_HAND)
    on, off = ([[0, 0, 1, 1, 0], [0] * 5], [[0] * 5, [0] * 5])
    np.testing.assert_allclose(heads.value[..., 0], [on, off], **EQUAL)
    assert list(heads.axes) == ["carry", "layer", "head", "place"]
    assert heads.n.tolist() == np.ones((2, 2, 5, 1)).tolist()
    # the logit of digit d is 2 d y - d^2, so the margin of 3 over 2 is 2 y - 5, and y is 2 or 3
    np.testing.assert_allclose(gap.value, [2, 2], **EQUAL)
    both = patch_head_pairs(adder, BY_HAND, [Component("head", 0, head) for head in (2, 3, 4)]).effect
    assert both.axes["first"] == ["L0H2", "L0H3", "L0H4"]
    np.testing.assert_allclose(both.value, [[[1] * 3, [1] * 3, [1, 1, 0]], [[0, 1, 0], [1, 0, 0], [0] * 3]], **EQUAL)


def test_a_carry_is_turned_on_by_either_head_and_off_by_both_and_the_decoy_does_nothing(adder):
    pairs = carry_only(4, 1, 12, seed=0)
    known = adder.known
    heads = patch_heads(adder, pairs).effect.at(place=EVERYWHERE)
    for layer, head in (*known.digit_heads, known.decoy, *known.idle_heads):
        np.testing.assert_allclose(heads.at(layer=layer, head=head).value, [0, 0], **EQUAL)
    for layer, head in known.carry_heads:
        on, off = heads.at(layer=layer, head=head).value
        assert on > 0.7
        assert off < 0.3
    one, other = (Component("head", *place) for place in known.carry_heads)
    together = patch_head_pairs(adder, pairs, [one, other]).effect.at(first=str(one), second=str(other))
    np.testing.assert_allclose(together.value, [1, 1], **EQUAL)


def test_a_part_that_holds_the_carry_is_the_same_in_a_donor_with_that_carry_and_heads_that_fetch_digits_are_not(adder):
    pairs = carry_only(4, 1, 24, seed=0)
    heads = tuple(Component("head", *place) for place in adder.known.carry_heads)
    mlps = tuple(Component("mlp", layer) for layer in range(adder.layers))
    patches = [Patch(heads, EVERYWHERE), Patch(mlps, "q_k")]
    axes = {"patch": ["heads", "mlps"]}

    def donor(sums):
        return same_carry(sums, 1, seed=3)

    effect = patch(adder, pairs, patches, "effect", axes, donor=carries.donor(donor)).effect
    np.testing.assert_allclose(effect.at(patch="mlps").value, [0, 0], **EQUAL)
    # the carry is on if the two digits add up to more than the digit of the sum, which these heads do not bring
    base, given = Columns.of(pairs.base), Columns.of(donor([*pairs.base, *pairs.source])[:24])
    turned = (given.a + given.b)[:, 1] > base.sum[:, 1]
    assert 0.2 < turned.mean() < 0.8
    np.testing.assert_allclose(effect.at(patch="heads").value, [turned.mean(), 0], **EQUAL)
    with pytest.raises(TaskError, match=r"^donors and bases have their digits at different tokens"):
        patch(adder, pairs, patches, "effect", axes, donor=carries.donor(lambda sums: [(1, 2)] * len(sums)))


def test_the_carry_is_found_at_its_query_alone_and_only_where_it_has_been_computed(adder):
    pairs = carry_only(4, 1, 8, seed=0)
    stream = patch_residuals(adder, pairs, (*PLACES, EVERYWHERE)).effect
    whole = [(layer, site) for layer in (0, 1) for site in SITES if (layer, site) != (0, "pre")]
    for layer, site in whole:
        here = stream.at(layer=layer, site=site)
        np.testing.assert_allclose(here.at(place="q_k").value, [1, 1], **EQUAL)
        for place in PLACES[:-1]:
            np.testing.assert_allclose(here.at(place=place).value, [0, 0], **EQUAL)
    before = stream.at(layer=0, site="pre")
    np.testing.assert_allclose(before.at(place="q_k").value, [0, 0], **EQUAL)
    np.testing.assert_allclose(before.at(place=EVERYWHERE).value, [1, 1], **EQUAL)
    assert before.at(place="a_k-1").value[0] > 0.7
    mlps = patch_mlps(adder, pairs).effect
    np.testing.assert_allclose(mlps.at(place="q_k").value, np.ones((2, 2)), **EQUAL)
    np.testing.assert_allclose(mlps.at(place="q_k-1").value, np.zeros((2, 2)), **EQUAL)


def test_margins_of_heads_are_those_of_the_stock_sweep_in_batches_of_any_size(random_model):
    answered = Answered(random_model, cross_digit(3, 1, 4, seed=1))
    query_B, row_B = answered.contrast.base.query_at_BK[:, 1], torch.arange(8)

    def metric(logits_BTV: torch.Tensor) -> torch.Tensor:
        found_BV = logits_BTV[row_B, query_B]
        return (
            found_BV[row_B, answered.contrast.source_id_BQ[:, 0]] - found_BV[row_B, answered.contrast.base_id_BQ[:, 0]]
        )

    opened, base_BT = random_model.bridge, answered.contrast.base.tokens_BT
    with torch.inference_mode():
        _, cache = opened.run_with_cache(answered.contrast.source.tokens_BT)
        expected = stock.get_act_patch_attn_head_out_all_pos(opened, base_BT, cache, metric, reduce="none").values
    patches = [Patch((Component("head", layer, head),), EVERYWHERE) for layer in range(3) for head in range(4)]
    for batch_size in (3, 20, 512):
        found = margins(answered, patches, batch_size)
        np.testing.assert_allclose(found.T, expected.reshape(12, -1), atol=1e-4)
        assert np.abs(found - answered.corrupt_B[:, None]).max(0).min() > 0.01


@pytest.mark.parametrize("kind", ["mlp", "pre", "post"])
def test_one_token_of_an_mlp_or_the_stream_is_what_a_hook_by_hand_would_change(random_model, kind):
    answered = Answered(random_model, carry_only(3, 1, 3, seed=1))
    component, at = Component(kind, 1), int(answered.contrast.base.a_at_BK[0, 2])
    row_B, query = torch.arange(6), int(answered.contrast.base.query_at_BK[0, 2])
    with torch.inference_mode():
        _, of_source = random_model.activations(answered.contrast.source, [component.hook_point])

        def change(activation, hook):
            activation = activation.clone()
            activation[:, at] = of_source[component.hook_point][:, at]
            return activation

        logits_BV = random_model.logits(answered.contrast.base, [(component.hook_point, change)])[:, query]
    expected_B = (
        logits_BV[row_B, answered.contrast.source_id_BQ[:, 0]] - logits_BV[row_B, answered.contrast.base_id_BQ[:, 0]]
    )
    found = margins(answered, [Patch((component,), "a_k")])
    np.testing.assert_allclose(found[:, 0], expected_B, atol=1e-4)


def test_the_stream_between_attention_and_mlp_is_written_for_both(random_model):
    answered = Answered(random_model, carry_only(3, 1, 4, seed=0))
    mid, attention_and_before = Component("mid", 2), [Component("pre", 2), *(Component("head", 2, h) for h in range(4))]
    found = margins(answered, [Patch((mid,), "q_k"), Patch(tuple(attention_and_before), "q_k")])
    np.testing.assert_allclose(found[:, 0], found[:, 1], atol=1e-4)


def test_everything_of_the_source_gives_the_source(random_model):
    answered = Answered(random_model, cross_digit(3, 2, 4, seed=0))
    found = margins(answered, [Patch((Component("pre", 0),), EVERYWHERE)])
    np.testing.assert_allclose(found[:, 0], answered.clean_B, atol=1e-4)


def test_places_are_tokens_by_what_they_are_to_the_column():
    adder = native_adder()
    answered = Answered(adder, carry_only(3, 0, 2, seed=0))
    places = {place: answered.contrast.at_BT(place)[0].nonzero()[:, 0].tolist() for place in (*PLACES, EVERYWHERE)}
    # . a0 a1 .. + at 8, b0 at 9, = at 16, which asks for s0
    by_hand = {"a_k": [2], "a_k-1": [1], "b_k": [10], "b_k-1": [9], "operator": [8], "equals": [16], "q_k-1": [16]}
    assert places == {**by_hand, "q_k": [17], EVERYWHERE: list(range(18))}
    with pytest.raises(
        TaskError, match=r"^there is no place 'c_k': no token has this role; the roles are everywhere, a_k, "
    ):
        answered.contrast.at_BT("c_k")


def test_rows_end_at_the_query_and_what_comes_after_would_change_nothing(random_model):
    pairs = carry_only(3, 1, 3, seed=0)
    answered = Answered(random_model, pairs)
    assert answered.contrast.base.tokens_BT.shape == (6, 19)  # s_2 is asked for at place 18
    whole = random_model.sums([*pairs.base, *pairs.source])
    with torch.inference_mode():
        logits_BV = random_model.logits(whole)[:, 18]
    margins(answered, [Patch((Component("mlp", 0),), EVERYWHERE)])
    row_B = torch.arange(6)
    expected_B = (
        logits_BV[row_B, answered.contrast.source_id_BQ[:, 0]] - logits_BV[row_B, answered.contrast.base_id_BQ[:, 0]]
    )
    np.testing.assert_allclose(answered.corrupt_B, expected_B, atol=1e-4)


def test_what_a_pair_does_not_have_is_no_sample():
    adder = native_adder()
    pairs = Pairs([(55, 41)], [(55, 45)], 2)
    with pytest.raises(TaskError, match="no such digit"):
        patch_heads(adder, pairs)
    with pytest.raises(TaskError, match="same carry into column 1"):
        patch_heads(adder, Pairs([(11, 11)], [(12, 12)], 1))
    with pytest.raises(TaskError, match="different tokens"):
        patch_heads(adder, Pairs([(99, 12)], [(10, 11)], 1))


def test_pairs_that_the_subject_gets_wrong_do_not_count():
    adder = native_adder()
    right = carry_only(3, 0, 3, seed=0)
    wrong = {right.base[0], right.source[1]}
    write = adder.writer.write

    def misread(a, b):
        """Some sums are asked with another digit, so their answer is wrong."""
        other = write(a + (-10 if a >= 110 else 10) * ((a, b) in wrong), b)
        return write(a, b)._replace(ids=[*other.ids[: other.equals_at + 1], *write(a, b).ids[other.equals_at + 1 :]])

    adder.writer.write = misread  # type: ignore[method-assign]
    with pytest.raises(ModelError, match=r"in 33 % of 3 pairs, and at least 50 % are needed"):
        Answered.of_right_pairs(adder, right, 64)
    wrong.remove(right.source[1])
    kept = Answered.of_right_pairs(adder, right, 64)
    assert list(kept.contrast.base.numbers) == [*right.base[1:], *right.source[1:]]
    assert (kept.clean_B > kept.corrupt_B).all()


def test_a_subject_that_cannot_add_is_refused_before_the_sweep():
    adder = native_adder()
    with torch.no_grad():
        adder.bridge.unembed.original_component.weight.zero_()
    message = r"^native adder: it answers both prompts right in 0 % of 1 pairs, and at least 50 % are needed"
    for instrument in (patch_heads, screen):
        with pytest.raises(ModelError, match=message):
            instrument(adder, BY_HAND)
    with pytest.raises(ModelError, match=message):
        patch_paths(adder, BY_HAND, [Component("head", 0, 0)], receivers(adder))


def test_components_that_do_not_exist_are_refused_in_one_line(adder):
    for component in (Component("head", 2, 0), Component("head", 0, 5), Component("mlp", -1)):
        with pytest.raises(ModelError, match=r"but 2 layers of 5 heads$"):
            patch(adder, BY_HAND, [Patch((component,), EVERYWHERE)], "effect", {"patch": ["it"]})


def test_a_subject_is_afterwards_as_it_was_even_when_a_hook_fails(adder):
    def fail(activation, hook):
        raise ZeroDivisionError

    sums = adder.sums([(123, 456)])
    with torch.inference_mode():
        before_BTV = adder.logits(sums)
        runs = Runs(Answered(adder, BY_HAND), slice(0, 2), [], [])
        with pytest.raises(ZeroDivisionError):
            runs.rerun(range(1, 2), [("blocks.1.hook_mlp_out", fail)])
        assert adder.logits(sums).equal(before_BTV)
    assert not any("forward" in vars(block) for block in adder.bridge.blocks)


def test_numbers_may_be_as_long_as_the_adder_takes_and_intervals_hold_their_means(adder):
    effect, _ = patch_heads(adder, carry_only(DIGITS, DIGITS - 2, 6, seed=3), ("q_k",))
    assert (effect.n == 6).all()
    assert (effect.low <= effect.value + 1e-9).all()
    assert (effect.value <= effect.high + 1e-9).all()
