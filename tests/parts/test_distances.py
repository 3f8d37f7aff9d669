"""Each bias against a loop over queries and keys."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers.models.llama import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

from experiments.parts.far_copies import FarCopies, FarCopiesConfig
from lab.errors import ModelError
from lab.parts.alibi import Alibi, AlibiConfig
from lab.parts.far_digits import FarDigits, FarDigitsConfig
from lab.parts.fire import Fire, FireConfig
from lab.parts.learned_ids import LearnedIds, LearnedIdsConfig
from lab.parts.locality import Locality, LocalityConfig
from lab.parts.nope import NoRotation
from lab.parts.part import Part
from lab.parts.positions import Positions
from lab.parts.relative_keys import RelativeKeys, RelativeKeysConfig
from lab.parts.window import Window, WindowConfig
from tests.from_scratch import step

HIDDEN = torch.finfo(torch.float32).min

ids = st.integers(0, 1000)
id_rows = st.tuples(st.integers(1, 2), st.integers(1, 3), st.integers(1, 4)).flatmap(
    lambda shape: st.tuples(
        st.lists(st.lists(ids, min_size=shape[1], max_size=shape[1]), min_size=shape[0], max_size=shape[0]),
        st.lists(st.lists(ids, min_size=shape[2], max_size=shape[2]), min_size=shape[0], max_size=shape[0]),
    )
)


def added(*parts: Part, queries, keys, circle: int | None = None, visible=None, training: bool = False) -> torch.Tensor:
    """What parts add to the scores, (B, H, Q, K)."""
    given, mask = step(Positions.of(queries, keys, circle), visible, training), torch.zeros(1, 1, 1, 1)
    for part in parts:
        if (act := part.act({}, given._replace(hidden_BQD=torch.zeros(())))) is not None:
            mask = act.shared(mask)
    return mask.expand(len(keys), -1, -1, -1)


def slopes(slope, heads: int = 1) -> Locality:
    return Locality(LocalityConfig(slope=slope), heads)


@settings(deadline=None, max_examples=30)
@given(id_rows, st.integers(1, 6), st.sampled_from([-1, 1]))
def test_alibi_is_the_slope_of_the_head_times_the_distance(rows, heads, sign):
    queries, keys = map(torch.tensor, rows)
    part = Alibi(AlibiConfig(as_released=sign > 0), heads)
    bias = added(part, queries=queries, keys=keys)
    assert bias.shape == (len(queries), heads, queries.shape[1], keys.shape[1])
    for b, h, q, k in torch.cartesian_prod(*map(torch.arange, bias.shape)).tolist():
        slope = 2 ** (-8 * (h + 1) / heads)
        expected = sign * slope * abs(int(queries[b, q]) - int(keys[b, k]))
        assert bias[b, h, q, k].item() == pytest.approx(expected, rel=1e-5)


@settings(deadline=None, max_examples=30)
@given(id_rows, st.floats(0, 4), st.none() | st.integers(1001, 1500))
def test_locality_is_one_slope_times_the_distance_the_shorter_way_round(rows, slope, circle):
    queries, keys = map(torch.tensor, rows)
    bias = added(slopes(slope), queries=queries, keys=keys, circle=circle)
    assert bias.shape == (len(queries), 1, queries.shape[1], keys.shape[1])
    for b, _, q, k in torch.cartesian_prod(*map(torch.arange, bias.shape)).tolist():
        ahead = int(queries[b, q]) - int(keys[b, k])
        steps = abs(ahead) if circle is None else min(ahead % circle, -ahead % circle)
        assert bias[b, 0, q, k].item() == pytest.approx(-slope * steps, rel=1e-5)


def test_each_head_may_have_a_slope_of_its_own():
    bias = added(slopes([1, 0.5, 0]), queries=torch.tensor([[7]]), keys=torch.tensor([[7, 3, 9]]))
    assert bias.tolist() == [[[[0, -4, -2]], [[0, -2, -1]], [[0, 0, 0]]]]


def test_learned_slopes_start_small_and_learn_to_hide_what_harms():
    """Attention to the key three ids away counts as loss, so the slope grows; what would give the key more weight than
    without a slope cannot be learned."""
    part, keys = slopes("learned", heads=2), torch.tensor([[5, 8]])

    def bias() -> torch.Tensor:
        return added(part, queries=keys[:, :1], keys=keys)

    assert bias().flatten().tolist() == pytest.approx([0, -0.03] * 2)
    optimizer = torch.optim.Adam(part.parameters(), lr=0.002)
    for _ in range(100):
        attention = bias().softmax(-1)
        loss = attention[0, 0, 0, 1] - attention[0, 1, 0, 1]  # harmful to the first head, useful to the second
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    harmful, useful = bias()[0, :, 0, 1].tolist()
    assert harmful < -3
    assert -0.1 < useful <= 0


def test_a_window_hides_what_is_farther_away_than_its_reach():
    parts, keys = (slopes([1, 0]), window(2)), torch.tensor([[0, 1, 2, 3, 13, 14]])
    found = added(*parts, queries=torch.tensor([[0]]), keys=keys, circle=16)
    assert found.tolist() == [[[[0, -1, -2, HIDDEN, HIDDEN, -2]], [[0, 0, 0, HIDDEN, HIDDEN, 0]]]]
    narrow = added(window(1), queries=torch.tensor([[5]]), keys=torch.tensor([[3, 4]]))
    assert narrow.tolist() == [[[[HIDDEN, 0]]]]


def window(reach: int) -> Window:
    return Window(WindowConfig(reach=reach))


def far(at_most: int) -> FarDigits:
    return FarDigits(FarDigitsConfig(at_most=at_most))


def test_a_far_digit_weighs_as_much_as_its_copies_during_training_and_once_afterwards():
    part = FarCopies(FarCopiesConfig(copies=8))
    # a sign, which is near anyway, and digits
    seen = {"queries": torch.tensor([[0]]), "keys": torch.tensor([[15, 0, 3, 4, 9, 13]]), "circle": 16}
    assert added(part, **seen, training=True).exp()[0, 0, 0].tolist() == pytest.approx([1, 1, 1, 8, 8, 1])
    assert not added(part, **seen).any()


@pytest.mark.parametrize("offset", [0, 1, 7, 15, 28])
def test_signs_are_never_far_however_the_ids_are_shifted_in_training(offset):
    words = "<begin> 1 2 3 4 5 6 <add_integer> 7 8 = 9"
    places = [None, 1, 2, 3, 4, 5, 6, 0, 1, 2, 0, 1]  # the place of each digit; 0 for the operator and "="
    keys = torch.tensor([[0 if place is None else (offset + place) % 29 for place in places]])
    part = FarCopies(FarCopiesConfig(copies=8))
    bias = added(part, queries=keys[:, -1:], keys=keys, circle=29, training=True)[0, 0, 0]
    found = [word for word, more in zip(words.split(), bias.tolist(), strict=True) if more]
    assert found == ["5", "6"]  # four places and more from the place 1


@given(st.integers(1, 40), st.integers(5, 60))
def test_far_digits_together_weigh_no_more_than_the_allowed_number_of_them(at_most, count):
    keys = torch.tensor([[0, *range(count, 2 * count), 0]])  # a sign at both ends
    bias = added(far(at_most), queries=torch.tensor([[count]]), keys=keys)
    weights = bias.exp()[0, 0, 0]
    assert weights[[0, 1, 2, 3, 4, -1]].tolist() == [1] * 6
    assert weights[5:-1].sum().item() == pytest.approx(min(at_most, count - 4), rel=1e-4)
    if count - 4 <= at_most:
        assert not bias.any()  # exactly zero


def test_far_digits_that_are_not_visible_do_not_count():
    visible = torch.tensor([[[False, True] + [True] * 5 + [False] * 5]])
    keys = torch.tensor([[9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]])
    bias = added(far(2), queries=torch.tensor([[0]]), keys=keys, visible=visible)
    assert not bias[..., 1:7].any()


@given(st.floats(0.1, 4), st.integers(1, 5000))
def test_with_locality_all_other_digits_weigh_no_more_however_many_there_are(slope, count):
    bias = added(slopes(slope), queries=torch.tensor([[count]]), keys=torch.arange(2 * count)[None])
    assert bias.double().exp().sum().item() <= 2 / (1 - math.exp(-slope)) * (1 + 1e-5)


@pytest.mark.parametrize("part", [Alibi(AlibiConfig(), 4), Fire(FireConfig(), 4), slopes(0.5)])
def test_where_ids_go_round_the_last_is_a_neighbour_of_the_first(part):
    with torch.no_grad():
        ends, neighbours = (
            added(part, queries=torch.tensor([[0]]), keys=torch.tensor([[key]]), circle=16) for key in (15, 1)
        )
    assert ends.equal(neighbours)


@settings(deadline=None, max_examples=30)
@given(id_rows, st.none() | st.integers(1001, 1500))
def test_relative_keys_know_signed_distances_up_to_four_the_shorter_way_round(rows, circle):
    queries, keys = map(torch.tensor, rows)
    found = RelativeKeys(RelativeKeysConfig(), 1, 1, 8).distances_of(Positions.of(queries, keys, circle))
    assert found.sum(-1).eq(1).all()
    steps = found.argmax(-1) - 4
    for b, q, k in torch.cartesian_prod(*map(torch.arange, steps.shape)).tolist():
        ahead = int(keys[b, k]) - int(queries[b, q])
        if circle is not None and abs(ahead) > circle / 2:
            ahead -= int(math.copysign(circle, ahead))
        if circle is None or 2 * abs(ahead) != circle:  # straight across, both signs are right
            assert steps[b, q, k] == max(-4, min(4, ahead))


def test_slopes_of_eight_heads_are_those_that_the_paper_lists():
    """Press et al., section 3: 1/2, 1/4 ... 1/256."""
    bias = added(Alibi(AlibiConfig(), 8), queries=torch.tensor([[1]]), keys=torch.tensor([[0]]))
    assert bias.flatten().tolist() == [-(2.0**-h) for h in range(1, 9)]


def test_alibi_prefers_a_tokens_own_position_and_the_released_code_the_farthest():
    positions = torch.arange(6)[None]
    for released, farthest in ((False, 5), (True, 0)):
        bias = added(Alibi(AlibiConfig(as_released=released), 4), queries=positions, keys=positions)
        assert bias[0, :, -1].argmax(-1).tolist() == [farthest] * 4


@settings(deadline=None, max_examples=30)
@given(id_rows, st.integers(1, 4), st.floats(-2, 2), st.floats(-3, 3))
def test_fire_is_an_mlp_of_the_distance_as_a_share_of_the_query(rows, heads, c, scale):
    queries, keys = map(torch.tensor, rows)
    fire = Fire(FireConfig(), heads).double()
    with torch.no_grad():
        fire.c.fill_(c)
        fire.threshold_scale.fill_(scale)
        bias = fire.bias(Positions.of(queries, keys))
        assert bias.shape == (len(queries), heads, queries.shape[1], keys.shape[1])
        first, second = fire.into_mlp, fire.out_of_mlp
        for b, q, k in torch.cartesian_prod(*map(torch.arange, (len(bias), *bias.shape[2:]))).tolist():
            i, j = int(queries[b, q]), int(keys[b, k])
            psi = [math.log1p(abs(c) * x) for x in (abs(i - j), max(512 * abs(scale), i))]
            share = psi[0] / (psi[1] + 1e-6)
            hidden = [
                max(0.0, float(w) * share + float(v)) for w, v in zip(first.weight[:, 0], first.bias, strict=True)
            ]
            expected = second.weight @ torch.tensor(hidden, dtype=torch.float64) + second.bias
            torch.testing.assert_close(bias[b, :, q, k], expected)


def test_all_that_fire_learns_has_a_gradient():
    fire = Fire(FireConfig(), 2)
    fire.bias(Positions.of(torch.tensor([[700, 20]]), torch.tensor([[3, 15, 20]]))).square().sum().backward()
    assert all(weight.grad is not None and weight.grad.abs().sum() > 0 for weight in fire.parameters())


def test_no_rotation_leaves_queries_and_keys_as_they_are():
    queries, keys = torch.randn(2, 3, 5, 8), torch.randn(2, 1, 5, 8)
    positions = torch.arange(5)[None]
    cos, sin = NoRotation(8)(torch.zeros(2, 5, 24), positions)
    config = LlamaConfig(hidden_size=24, num_attention_heads=3)
    assert cos.shape == sin.shape == LlamaRotaryEmbedding(config)(torch.zeros(2, 5, 24), positions)[0].shape
    turned = apply_rotary_pos_emb(queries, keys, cos, sin)
    assert turned[0].equal(queries)
    assert turned[1].equal(keys)


def test_an_id_without_an_embedding_is_one_line_that_says_what_to_do():
    part, none = LearnedIds(LearnedIdsConfig(), 4, 2), torch.zeros(1, 2, 2)
    found = part.embedded(none, {}, torch.tensor([[0, 3]]))
    assert found.equal(part.vectors.weight[None, [0, 3]])
    with pytest.raises(
        ModelError, match=r"^a row has position id 7, but only ids below 4 .*largest` above 7"
    ) as caught:
        part.embedded(none, {}, torch.tensor([[0, 7]]))
    assert "\n" not in str(caught.value)
