import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.smallest_adder.codecs import digits_of
from lab.smallest_adder.rows import ANSWERS, batch, decode, encode, rows

NUMBERS = st.integers(0, 10**10 - 1)


def test_a_row_is_both_numbers_ones_first_a_zero_around_each_and_what_was_answered():
    # 1234567890 + 9876543210 = 11111111100
    assert encode(1234567890, 9876543210) == [0, *(0, 9, 8, 7, 6, 5, 4, 3, 2, 1), 0, 0, *range(10), 0]
    assert decode([0, 0, *9 * [1]]) == 11111111100


@given(NUMBERS, NUMBERS)
def test_a_row_is_the_prompt_and_the_sum_and_reads_back_as_it(a, b):
    ids_BT, answers_BA = rows(*np.split(digits_of([(a, b)]), 2, axis=1))
    assert ids_BT.shape == (1, 34)
    assert ids_BT[0].tolist() == encode(a, b) + answers_BA[0, :-1].tolist()
    assert decode(answers_BA[0].tolist()) == a + b


def test_a_batch_is_a_function_of_its_seed_and_step():
    one, again = batch("train", 3, 5, 8, 0.5), batch("train", 3, 5, 8, 0.5)
    assert all((a == b).all() for a, b in zip(one, again, strict=True))
    for other in (batch("train", 3, 6, 8, 0.5), batch("train", 4, 5, 8, 0.5), batch("valid", 3, 5, 8, 0.5)):
        assert (one[0] != other[0]).any()


@pytest.mark.parametrize(
    ("kind", "share"),
    [("uniform", 0.1), ("nines", 0.1 + 0.9 / 2), ("zeros in a", 0.1 + 0.9 / 2), ("zeros in b", 0.1 + 0.9 / 2)],
)
def test_each_quarter_of_the_problems_is_uniform_or_has_more_nines_or_zeros_in_a_or_zeros_in_b(kind, share):
    ids_BT, answers_BA = batch("train", 0, 0, 8000, 1.0)
    a_BD, b_BD = ids_BT[:, 1:11], ids_BT[:, 13:23]
    seen = {"uniform": a_BD == 5, "nines": a_BD + b_BD == 9, "zeros in a": a_BD == 0, "zeros in b": b_BD == 0}
    place = list(seen).index(kind)
    assert seen[kind][place::4].mean() == pytest.approx(share, abs=0.02)
    assert (answers_BA[:, 0] == (a_BD + b_BD)[:, 0] % 10).all()


def test_digits_are_uniform_where_nothing_is_mixed_in():
    ids_BT, _ = batch("train", 1, 0, 4000)
    shares = np.bincount(ids_BT[:, 1:11].ravel(), minlength=10) / 40_000
    assert shares == pytest.approx(np.full(10, 0.1), abs=0.01)
    assert ANSWERS == 11
