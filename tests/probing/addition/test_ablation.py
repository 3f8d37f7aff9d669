"""Ablation of an adder whose heads are known: what hurts which columns, and what hurts nobody."""

import numpy as np
import pytest

from lab.errors import ModelError, TaskError
from lab.probing.addition.ablation import ablate
from lab.probing.components import Component
from tests.probing.known_adders import llama_adder, native_adder

GENERATOR = np.random.default_rng(0)
NUMBERS = [tuple(map(int, GENERATOR.integers(1000, 10_000, 2))) for _ in range(40)]


def each(adder):
    """Every head and every MLP, each by itself."""
    return [(component,) for component in adder.components]


@pytest.fixture(scope="module", params=[native_adder, llama_adder])
def adder(request):
    return request.param()


@pytest.fixture(scope="module", params=["mean", "resample"])
def ablated(request, adder):
    return ablate(adder, adder.sums(NUMBERS), each(adder), request.param)


def test_what_nobody_reads_is_not_missed(adder, ablated):
    for layer, head in [adder.known.decoy, *adder.known.idle_heads]:
        name = str(Component("head", layer, head))
        assert ablated.exact.at(group=name).value == 0
        for part in (ablated.column, ablated.stratum, ablated.chain):
            assert np.nanmax(np.abs(part.at(group=name).value)) == 0
    assert (ablated.intact.value == 1).all()


def test_heads_of_carries_hurt_every_column_but_the_ones(adder, ablated):
    for layer, head in adder.known.carry_heads:
        column = ablated.column.at(group=str(Component("head", layer, head)))
        assert column.value[0] == 0
        assert (column.value[1:4] < -0.1).all()


def test_heads_of_digits_hurt_all_columns(adder, ablated):
    for layer, head in adder.known.digit_heads:
        assert (ablated.column.at(group=str(Component("head", layer, head))).value[:4] < -0.5).all()


def test_the_mean_of_carries_is_below_one_half_so_only_columns_with_a_carry_are_lost(adder):
    few_carries = [(a, int("".join("4" if digit > "4" else digit for digit in str(b)))) for a, b in NUMBERS]
    found = ablate(adder, adder.sums(few_carries), [(Component("mlp", 0),)], "mean")
    assert found.column.at(group="L0 mlp", column=0).value == 0
    assert found.stratum.at(group="L0 mlp", stratum="carry").value < -0.9
    assert found.stratum.at(group="L0 mlp", stratum="no carry").value > -0.2


def test_groups_in_one_forward_pass_are_as_groups_one_by_one(adder):
    sums, groups = adder.sums(NUMBERS[:4]), [*each(adder)[:6], (Component("head", 0, 2), Component("head", 0, 3))]
    for replacement in ("mean", "resample"):
        together = ablate(adder, sums, groups, replacement, batch_size=999)
        apart = ablate(adder, sums, groups, replacement, batch_size=2)
        np.testing.assert_array_equal(together.column.value, apart.column.value)
        np.testing.assert_array_equal(together.exact.value, apart.exact.value)
        assert together.exact.axes["group"][-1] == "L0H2+L0H3"


def test_hooks_are_gone_afterwards(adder):
    sums = adder.sums(NUMBERS[:4])
    before = adder.logits(sums)
    ablate(adder, sums, each(adder), where="everywhere")
    assert adder.logits(sums).equal(before)


def test_ablating_an_mlp_before_the_answer_too_changes_nothing_if_nobody_reads_it_there(adder):
    # nobody reads what the layer-0 MLP writes before the answer
    sums = adder.sums(NUMBERS)
    group = [(Component("mlp", 0),)]
    queries, everywhere = (ablate(adder, sums, group, where=where) for where in ("queries", "everywhere"))
    np.testing.assert_array_equal(queries.column.value, everywhere.column.value)


def test_what_cannot_be_ablated_is_refused_in_one_line(adder):
    sums = adder.sums(NUMBERS[:4])
    with pytest.raises(ModelError, match="has no L7H0, but 2 layers of 5 heads"):
        ablate(adder, sums, [(Component("head", 7, 0),)])
    with pytest.raises(TaskError, match="nothing to ablate"):
        ablate(adder, sums, [])
    with pytest.raises(TaskError, match=r"^replacement 'zeros': should be one of mean, resample$"):
        ablate(adder, sums, each(adder), replacement="zeros")  # type: ignore[arg-type]
    with pytest.raises(TaskError, match=r"^where 'nowhere': should be one of queries, everywhere$"):
        ablate(adder, sums, each(adder), where="nowhere")  # type: ignore[arg-type]
    with pytest.raises(TaskError, match="2 different pairs of operand lengths"):
        ablate(adder, adder.sums([(1, 2), (10, 20)]), each(adder))
