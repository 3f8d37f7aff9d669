"""Sums as rows of tokens, and the batches of training."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.adders.loop import read_answers
from lab.adders.rows import batch, digits_of, prompts, rows
from lab.adders.spec import load

NUMBERS = st.integers(0, 10**10 - 1)
ADDER = load(Path(__file__).parents[2] / "experiments" / "plain-adder" / "adder_47.json")


def test_a_row_is_both_numbers_ones_first_a_zero_around_each_and_what_was_answered():
    # 1234567890 + 9876543210 = 11111111100
    assert prompts(ADDER, [(1234567890, 9876543210)]).tolist() == [
        [0, *(0, 9, 8, 7, 6, 5, 4, 3, 2, 1), 0, 0, *range(10), 0]
    ]
    assert read_answers(ADDER, np.array([[0, 0, *9 * [1]]])) == [11111111100]


@given(NUMBERS, NUMBERS)
def test_a_row_is_the_prompt_and_the_sum_and_reads_back_as_it(a, b):
    ids_BT, answers_BA = rows(ADDER, *digits_of([(a, b)]))
    assert ids_BT.tolist() == [prompts(ADDER, [(a, b)])[0].tolist() + answers_BA[0, :-1].tolist()]
    assert read_answers(ADDER, answers_BA) == [a + b]


def test_a_batch_is_a_function_of_its_seed_and_step():
    one, again = batch(ADDER, "train", 3, 5, 8, 0.5), batch(ADDER, "train", 3, 5, 8, 0.5)
    assert all((a == b).all() for a, b in zip(one, again, strict=True))
    for split, seed, step in (("train", 3, 6), ("train", 4, 5), ("valid", 3, 5)):
        assert (one[0] != batch(ADDER, split, seed, step, 8, 0.5)[0]).any()


@pytest.mark.parametrize(
    ("kind", "share"),
    [("uniform", 0.1), ("nines", 0.1 + 0.9 / 2), ("zeros in a", 0.1 + 0.9 / 2), ("zeros in b", 0.1 + 0.9 / 2)],
)
def test_each_quarter_of_the_problems_is_uniform_or_has_more_nines_or_zeros_in_a_or_zeros_in_b(kind, share):
    ids_BT, answers_BA = batch(ADDER, "train", 0, 0, 8000, 1.0)
    a_BD, b_BD = ids_BT[:, 1:11], ids_BT[:, 13:23]
    seen = {"uniform": a_BD == 5, "nines": a_BD + b_BD == 9, "zeros in a": a_BD == 0, "zeros in b": b_BD == 0}
    place = list(seen).index(kind)
    assert seen[kind][place::4].mean() == pytest.approx(share, abs=0.02)
    assert (answers_BA[:, 0] == (a_BD + b_BD)[:, 0] % 10).all()
