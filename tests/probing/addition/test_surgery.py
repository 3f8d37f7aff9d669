"""Oracle surgery on adders that were broken in a known place: what is given back is what was broken."""

import numpy as np
import pytest
import torch

from lab.errors import ModelError
from lab.probing.addition.alignment import Aligned, Lengths, foreign_digits, queries
from lab.probing.addition.surgery import CarrySite, align, operations, stop_leak, surgery, write_carry
from lab.probing.instruments.subspaces import Subspace
from tests.probing.known_adders import llama_adder, native_adder

GENERATOR = np.random.default_rng(0)
LENGTHS = {
    length: [tuple(map(int, GENERATOR.integers(10 ** (length - 1), 10**length, 2))) for _ in range(24)]
    for length in (3, 5)
}
CARRY_READERS = [Aligned(0, 2, "a", -1), Aligned(0, 3, "b", -1)]


@pytest.fixture(autouse=True)
def no_gradients():
    with torch.no_grad():
        yield


@pytest.fixture(params=[native_adder, llama_adder])
def adder(request):
    return request.param()


def broken(adder, attention: bool = False, carry: bool = False):
    """Breaks an adder. `attention`: carry heads attend uniformly. `carry`: the carry is computed, but not written."""
    layer = adder.bridge.blocks[0]
    if attention:
        layer.attn.q.original_component.weight.unflatten(0, (adder.heads, -1))[2:4] = 0
    if carry:
        layer.mlp.out.original_component.weight.zero_()
    return adder


def recovery(adder):
    direction_D = adder.known.carry_D
    carry_site = CarrySite(0, "post", Subspace(direction_D[:, None], torch.zeros(1), torch.ones(1)))
    lengths: Lengths = {length: adder.sums(numbers) for length, numbers in LENGTHS.items()}
    return surgery(adder, lengths, CARRY_READERS, carry_site)


def test_an_adder_that_is_whole_keeps_what_is_right_and_loses_what_is_wrong(adder):
    found = recovery(adder).exact
    for operation in ("vanilla", "no leak", "alignment", "carry", "both"):
        assert found.at(operation=operation).value.min() == 1
    for operation in ("wrong offset", "other heads", "flipped carry"):
        assert found.at(operation=operation).value.max() < 0.3


def test_heads_that_lost_their_digits_recover_by_alignment_and_by_the_carry_that_they_are_for(adder):
    found = recovery(broken(adder, attention=True)).digits
    for operation in ("carry", "both"):
        assert found.at(operation=operation).value.min() == 1
    # the ones have no digit below: alignment does not restore where an intact adder looks there
    for length in LENGTHS:
        aligned = found.at(length=length, operation="alignment")
        assert aligned.value >= 1 - 1 / length
        for operation in ("vanilla", "no leak", "other heads", "wrong offset", "flipped carry", "random subspace"):
            assert found.at(length=length, operation=operation).high < aligned.low


def test_a_carry_that_was_lost_recovers_by_the_carry_alone(adder):
    found = recovery(broken(adder, carry=True))
    for operation in ("carry", "both"):
        assert found.exact.at(operation=operation).value.min() == 1
    for operation in ("vanilla", "no leak", "alignment", "flipped carry", "random subspace"):
        assert found.exact.at(operation=operation).value.max() < 0.5
        assert found.digits.at(operation=operation).value.max() < 0.9


def test_heads_give_their_digits_what_they_are_told_and_scale_the_rest(adder):
    sums = adder.sums([(347, 528)])
    layer_1 = [Aligned(1, 0, "a", 0, 0.5), Aligned(1, 0, "b", -1, 0.25)]
    name = "blocks.1.attn.hook_pattern"
    _, found = adder.activations(sums, [name], align(sums, layer_1))
    query = int(sums.query_at_BK[0, 1])
    row_T = found[name][0, 0, query]
    assert row_T[sums.a_at_BK[0, 1]] == pytest.approx(0.5)
    assert row_T[sums.b_at_BK[0, 0]] == pytest.approx(0.25)
    # the other 16 of the 18 visible tokens got equal attention before
    assert sorted(row_T[: query + 1].tolist())[:-2] == pytest.approx([0.25 / 16] * 16)
    first_T = found[name][0, 0, int(sums.query_at_BK[0, 0])]  # the ones have no digit below
    assert first_T[sums.a_at_BK[0, 0]] == pytest.approx(0.5)
    assert first_T.sum() == pytest.approx(1)
    untouched = adder.activations(sums, [name])[1][name]
    assert found[name][:, 1:].equal(untouched[:, 1:])
    assert found[name][:, 0, : int(sums.equals_at_B[0])].equal(untouched[:, 0, : int(sums.equals_at_B[0])])


def test_without_a_leak_no_foreign_digit_is_looked_at_and_rows_still_sum_to_one(adder):
    sums = adder.sums(LENGTHS[5][:3])
    names = [f"blocks.{layer}.attn.hook_pattern" for layer in range(2)]
    _, found = adder.activations(sums, names, stop_leak(adder, sums))
    foreign_BQT, at_BQ = foreign_digits(sums), queries(sums)
    for name in names:
        torch.testing.assert_close(found[name].sum(-1), torch.ones_like(found[name].sum(-1)))
        for row in range(3):
            for column in range(5):
                seen_HT = found[name][row, :, at_BQ[row, column]]
                assert seen_HT[:, foreign_BQT[row, column]].abs().max() == 0


def test_a_carry_is_written_into_the_subspace_and_nowhere_else(adder):
    sums = adder.sums([(345, 678)])
    direction_D = adder.known.carry_D
    carry = CarrySite(0, "post", Subspace(direction_D[:, None], torch.zeros(1), torch.full((1,), 7.0)))
    name, at_Q = "blocks.0.hook_resid_post", queries(sums)[0]
    _, before = adder.activations(sums, [name])
    _, after = adder.activations(sums, [name], write_carry(sums, carry, torch.tensor([[1, 0, 1, 0, 0]])))
    moved_TD = (after[name] - before[name])[0]
    assert (after[name][0] @ direction_D)[at_Q[:4]].tolist() == pytest.approx([7, 0, 7, 0], abs=1e-2)
    outside_TD = moved_TD - (moved_TD @ direction_D)[:, None] * direction_D
    assert outside_TD.abs().max() < 1e-2
    assert moved_TD[: at_Q[0]].abs().max() == 0


def test_hooks_are_gone_afterwards(adder):
    sums = adder.sums(LENGTHS[3])
    before = adder.logits(sums)
    surgery(adder, {3: sums}, CARRY_READERS)
    assert adder.logits(sums).equal(before)


def test_only_what_is_given_is_tried(adder):
    assert list(operations(adder, [], None)) == ["vanilla", "no leak", "no leak, wrong place"]
    wrong = ["no leak, wrong place", "other heads", "wrong offset"]
    assert list(operations(adder, CARRY_READERS, None))[2:] == ["alignment", *wrong]


def test_a_subspace_of_another_model_is_refused_in_one_line(adder):
    sums: Lengths = {3: adder.sums(LENGTHS[3])}
    with pytest.raises(ModelError, match=r"shape \(7, 1\): should be \(20, dimensions\)"):
        surgery(adder, sums, carry=CarrySite(0, "post", Subspace(torch.ones(7, 1), torch.zeros(1), torch.ones(1))))
    with pytest.raises(ModelError, match="should be orthonormal"):
        surgery(adder, sums, carry=CarrySite(0, "post", Subspace(torch.ones(20, 1), torch.zeros(1), torch.ones(1))))
