import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.errors import TaskError
from lab.numbers.columns import Columns
from lab.probing.addition.pairs import Pairs, carry_only, cross_digit, same_carry, through_nine, with_totals

seeds = st.integers(0, 10**6)
carry_only_cells = st.integers(2, 12).flatmap(lambda length: st.tuples(st.just(length), st.integers(0, length - 2)))
cross_digit_cells = st.integers(2, 12).flatmap(lambda length: st.tuples(st.just(length), st.integers(1, length - 1)))


def columns(pairs: Pairs, length: int) -> tuple[Columns, Columns]:
    return Columns.of(pairs.base, length + 1), Columns.of(pairs.source, length + 1)


def check_lengths(pairs: Pairs, length: int, count: int) -> None:
    assert len(pairs.base) == len(pairs.source) == len(pairs.target) == count
    for base, source in zip(pairs.base, pairs.source, strict=True):
        assert {len(str(number)) for number in (*base, *source)} == {length}
        assert len(str(sum(base))) == len(str(sum(source)))


@settings(max_examples=10)
@given(carry_only_cells, st.integers(1, 30), seeds)
def test_carry_only_pairs_differ_in_one_column_and_in_the_carry_that_it_sends(cell, count, seed):
    length, j = cell
    pairs = carry_only(length, j, count, seed)
    check_lengths(pairs, length, count)
    base, source = columns(pairs, length)
    elsewhere = np.arange(length + 1) != j
    assert pairs.column == j + 1
    for of_base, of_source in ((base.a, source.a), (base.b, source.b)):
        assert (of_base[:, elsewhere] == of_source[:, elsewhere]).all()
    assert ((source.a + source.b - base.a - base.b)[:, j] == 10).all()
    assert (base.sum[:, j] == source.sum[:, j]).all()
    assert (source.carry - base.carry == (np.arange(length + 1) == j + 1)).all()
    assert (pairs.target == source.sum[:, j + 1]).all()
    assert (pairs.target == (base.sum[:, j + 1] + 1) % 10).all()
    other = np.arange(length + 1) != j + 1
    assert (base.sum[:, other] == source.sum[:, other]).all()


@settings(max_examples=10)
@given(st.integers(3, 12).flatmap(lambda length: st.tuples(st.just(length), st.integers(0, length - 3))), seeds)
def test_through_nine_pairs_differ_in_one_column_and_in_the_carries_into_the_next_two(cell, seed):
    length, j = cell
    pairs = through_nine(length, j, 10, seed)
    check_lengths(pairs, length, 10)
    base, source = columns(pairs, length)
    elsewhere = np.arange(length + 1) != j
    assert pairs.column == j + 2
    for of_base, of_source in ((base.a, source.a), (base.b, source.b)):
        assert (of_base[:, elsewhere] == of_source[:, elsewhere]).all()
    assert ((base.a + base.b)[:, j + 1] == 9).all()
    turned = np.isin(np.arange(length + 1), [j + 1, j + 2])
    assert (source.carry - base.carry == turned).all()
    assert (pairs.target == source.sum[:, j + 2]).all()


@settings(max_examples=20)
@given(carry_only_cells, seeds)
def test_a_sum_with_the_same_carry_has_another_total_in_one_column_and_nothing_else_that_differs(cell, seed):
    length, j = cell
    pairs = carry_only(length, j, 10, seed)
    sums = [*pairs.base, *pairs.source]
    others = same_carry(sums, j, seed)
    assert others == same_carry(sums, j, seed)
    before, after = Columns.of(sums, length + 1), Columns.of(others, length + 1)
    assert (before.carry == after.carry).all()
    elsewhere = np.arange(length + 1) != j
    for name in "ab":
        assert (getattr(before, name)[:, elsewhere] == getattr(after, name)[:, elsewhere]).all()
    assert ((before.a + before.b)[:, j] != (after.a + after.b)[:, j]).all()


def test_sums_with_the_same_carry_worked_out_by_hand():
    # a carry comes from the ones, 5 + 8: the tens send a carry if they add up to at least 9
    found = {same_carry([(115, 198)], 1, seed)[0] for seed in range(300)}
    totals = {(a // 10 % 10) + (b // 10 % 10) for a, b in found}
    assert totals == set(range(9, 19)) - {10}
    with pytest.raises(TaskError, match=r"^95 and 120: both should have a digit above column 1$"):
        same_carry([(95, 120)], 1, 0)


@given(st.integers(0, 18), seeds)
def test_two_digits_get_the_total_that_is_asked_for(total, seed):
    ((a, b),) = with_totals([(4321, 9876)], 2, [total], seed)
    assert a // 100 % 10 + b // 100 % 10 == total
    assert (a - a // 100 % 10 * 100, b - b // 100 % 10 * 100) == (4021, 9076)


def test_totals_that_no_two_digits_have_are_refused():
    with pytest.raises(TaskError, match=r"^total 19: should be from 0 to 18, as two digits add up to$"):
        with_totals([(4321, 9876)], 2, [19], 0)


@settings(max_examples=10)
@given(cross_digit_cells, st.integers(1, 30), seeds)
def test_cross_digit_pairs_have_another_carry_and_a_target_that_is_neither_sums_digit(cell, count, seed):
    length, k = cell
    pairs = cross_digit(length, k, count, seed)
    check_lengths(pairs, length, count)
    base, source = columns(pairs, length)
    assert pairs.column == k
    assert (base.carry[:, k] != source.carry[:, k]).all()
    assert (pairs.target == (base.a[:, k] + base.b[:, k] + source.carry[:, k]) % 10).all()
    assert (pairs.target != base.sum[:, k]).all()
    assert (pairs.target != source.sum[:, k]).all()


@settings(max_examples=5)
@given(st.sampled_from([carry_only, cross_digit]), st.integers(1, 2), seeds)
def test_pairs_are_a_function_of_seed_length_and_column(make, column, seed):
    pairs = make(4, column, 20, seed)
    again, more = make(4, column, 20, seed), make(4, column, 30, seed)
    assert (pairs.base, pairs.source) == (again.base, again.source)
    assert (pairs.base, pairs.source) == (more.base[:20], more.source[:20])
    assert make(4, column, 20, seed + 1).base != pairs.base


@settings(max_examples=10)
@given(cross_digit_cells, seeds)
def test_turned_pairs_change_places_and_have_the_other_target(cell, seed):
    length, k = cell
    pairs = cross_digit(length, k, 10, seed)
    turned = Pairs(pairs.source, pairs.base, k)
    base, source = columns(pairs, length)
    assert (turned.target == (source.a[:, k] + source.b[:, k] + base.carry[:, k]) % 10).all()


@pytest.mark.parametrize("make", [carry_only, cross_digit])
def test_no_pairs_are_not_drawn(make):
    with pytest.raises(TaskError, match=r"^0 pairs: should be 1 or more$"):
        make(4, 1, 0, 0)


def test_targets_worked_out_by_hand():
    # 58 + 71: 5 + 7 and no carry; from 19 + 44 a carry comes: 13
    assert Pairs([(58, 71)], [(19, 44)], 1).target.tolist() == [3]
    assert Pairs([(19, 44)], [(58, 71)], 1).target.tolist() == [5]


def test_cross_digit_pairs_go_both_ways_about_as_often():
    pairs = cross_digit(4, 2, 1000, 0)
    assert abs(Columns.of(pairs.base).carry[:, 2].mean() - 0.5) < 0.05


def test_changed_columns_have_any_digits():
    base, source = columns(carry_only(3, 1, 2000, 0), 3)
    assert set(base.a[:, 1]) == set(range(9))
    assert set(source.a[:, 1]) == set(range(1, 10))
    assert set(base.a[:, 1] + base.b[:, 1]) == set(range(9))


@pytest.mark.parametrize(("length", "column"), [(3, -1), (3, 2), (3, 3), (1, 0)])
def test_carries_that_would_leave_the_numbers_are_refused(length, column):
    with pytest.raises(TaskError, match=rf"^column {column} of {length} digits: .* below {length}$"):
        carry_only(length, column, 1, 0)


@pytest.mark.parametrize(("length", "column"), [(3, -1), (3, 1), (2, 0)])
def test_carries_through_a_nine_that_would_leave_the_numbers_are_refused(length, column):
    with pytest.raises(TaskError, match=rf"^column {column} of {length} digits: .* below {length}$"):
        through_nine(length, column, 1, 0)


@pytest.mark.parametrize(("length", "column"), [(3, 0), (3, 3), (3, -1), (1, 0)])
def test_columns_that_no_carry_comes_into_are_refused(length, column):
    with pytest.raises(TaskError, match=rf"^column {column} of {length} digits: should be from 1 to {length - 1}$"):
        cross_digit(length, column, 1, 0)
