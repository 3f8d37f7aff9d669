"""Columns against the table of the docstring and against the schoolbook's way of adding."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.numbers.columns import STRATA, Columns

naturals = st.one_of(st.integers(0, 99), st.integers(0, 10**12), st.integers(0, 10**30))
# digits of two numbers whose columns often add up to nine
chained = st.lists(
    st.sampled_from([(4, 5), (9, 0), (2, 7), (5, 5), (1, 1), (9, 9), (0, 0)]), min_size=1, max_size=9
).map(lambda digits: tuple(int("".join(str(pair[side]) for pair in digits)) for side in (0, 1)))
sums = st.lists(st.one_of(st.tuples(naturals, naturals), chained), min_size=1, max_size=6)


def added_by_hand(a: int, b: int, width: int) -> list[dict[str, int]]:
    """Column by column from the ones. The stratum is that of the column below."""
    found, carry, nines, below = [], 0, 0, 0
    for k in range(width):
        x, y = a // 10**k % 10, b // 10**k % 10
        stratum = "chain" if k and below == 9 else "carry" if below > 9 else "no carry"
        found.append({"a": x, "b": y, "sum": (x + y + carry) % 10, "carry": carry, "chain": nines,
                      "tricase": (x + y > 9) - (x + y < 9), "stratum": STRATA.index(stratum)})  # fmt: skip
        carry, nines, below = (x + y + carry) // 10, nines + 1 if x + y == 9 else 0, x + y
    return found


def test_the_table_of_the_docstring_is_true():
    found = Columns.of([(3578, 426)])
    assert found.a.tolist() == [[8, 7, 5, 3]]
    assert found.b.tolist() == [[6, 2, 4, 0]]
    assert found.sum.tolist() == [[4, 0, 0, 4]]
    assert found.carry.tolist() == [[0, 1, 1, 1]]
    assert found.tricase.tolist() == [[1, 0, 0, -1]]
    assert found.chain.tolist() == [[0, 0, 1, 2]]
    assert [STRATA[i] for i in found.stratum[0]] == ["no carry", "carry", "chain", "chain"]


def test_a_chain_without_a_carry_is_a_chain_too():
    found = Columns.of([(4500, 5499)])
    assert found.sum.tolist() == [[9, 9, 9, 9]]
    assert found.carry.tolist() == [[0, 0, 0, 0]]
    assert found.chain.tolist() == [[0, 1, 2, 3]]
    assert [STRATA[i] for i in found.stratum[0]] == ["no carry", "chain", "chain", "chain"]


@settings(max_examples=20)
@given(sums, st.integers(0, 40))
def test_columns_are_those_of_adding_by_hand(numbers, width):
    found = Columns.of(numbers, width)
    width = max(width, max(len(str(a + b)) for a, b in numbers))
    for row, (a, b) in enumerate(numbers):
        by_hand = added_by_hand(a, b, width)
        for name in by_hand[0]:
            assert getattr(found, name)[row].tolist() == [column[name] for column in by_hand]


@settings(max_examples=20)
@given(sums)
def test_digits_and_carries_make_up_the_numbers(numbers):
    found = Columns.of(numbers)
    over_BK = found.a + found.b + found.carry - found.sum
    assert (over_BK[:, :-1] == 10 * found.carry[:, 1:]).all()
    assert (over_BK[:, -1] == 0).all()
    for row, (a, b) in enumerate(numbers):
        for digits_BK, number in ((found.a, a), (found.b, b), (found.sum, a + b)):
            assert int("".join(map(str, digits_BK[row, ::-1]))) == number


@settings(max_examples=20)
@given(sums)
def test_rows_do_not_depend_on_each_other(numbers):
    together = Columns.of(numbers)
    for row, pair in enumerate(numbers):
        alone = Columns.of([pair], width=together.a.shape[1])
        for name in ("a", "b", "sum", "carry", "tricase", "chain", "stratum"):
            assert np.array_equal(getattr(alone, name)[0], getattr(together, name)[row])


def test_no_additions_are_refused():
    with pytest.raises(ValueError, match=r"^no additions$"):
        Columns.of([])
