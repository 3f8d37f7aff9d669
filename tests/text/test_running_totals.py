"""Running totals, against calculations worked out by hand, and read back to the products and sums they stand for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.errors import TaskError
from lab.numbers.representations import Integer
from lab.numbers.sampling import Cell, Problem, block, posed
from lab.numbers.tasks import SUM, TASKS, several
from lab.text.running_totals import RESULT, TOTAL, RunningTotals

PRODUCT = TASKS["multiply_hard_integer"]
NOTATION = RunningTotals([PRODUCT, SUM])
naturals = st.integers(0, 10**12)


def product(a: int, b: int) -> Problem:
    found = posed(PRODUCT, str(a), str(b), 1)
    assert found
    return found


def total(*terms: int) -> Problem:
    found = posed(SUM, "+".join(map(str, terms)), None, 1)
    assert found
    return found


def test_a_product_has_a_part_and_a_total_for_each_digit_of_the_second_factor():
    assert " ".join(NOTATION.question(product(47, 23))) == "7 4 <multiply_hard_integer> 3 2 ="
    steps = "part 1 4 1 total 1 4 1 part 4 9 0 total 8 0 1 answer 1 8 0 1"  # 47 x 3 = 141; 47 x 2 + 14 = 108; 1081
    assert " ".join(NOTATION.answer(product(47, 23))) == steps


def test_a_sum_has_a_total_after_each_term():
    asked = "<sum_integers> 5 2 1 <sum_integers> 7 9 <sum_integers> 3 ="
    assert " ".join(NOTATION.question(total(125, 97, 3))) == asked
    assert " ".join(NOTATION.answer(total(125, 97, 3))) == "total 5 2 1 total 2 2 2 total 5 2 2"


@pytest.mark.slow
@given(naturals, naturals)
def test_the_ones_digits_of_the_totals_and_the_last_total_make_the_product(a, b):
    words = NOTATION.answer(product(a, b))
    totals = " ".join(words[: words.index(RESULT)]).split(TOTAL)[1:]
    digits = [text.split("part")[0].split() for text in totals]
    assert "".join([*(row[0] for row in digits), *digits[-1][1:]])[::-1].lstrip("0") == str(a * b).lstrip("0")
    assert NOTATION.read(words, Integer) == str(a * b)


@given(st.lists(naturals, min_size=2, max_size=8))
def test_the_last_total_is_the_sum(terms):
    assert NOTATION.read(NOTATION.answer(total(*terms)), Integer) == str(sum(terms))


@pytest.mark.parametrize("words", ["", "1 2", "part 1 2", "answer", "total 1 answer", "total 1 =", "part 1 total 1"])
def test_words_without_a_number_after_the_last_sign_are_no_answer(words):
    assert NOTATION.read(words.split(), Integer) is None


def test_every_word_of_a_problem_is_in_the_vocabulary():
    for cell in (Cell(PRODUCT, 4), Cell(SUM, 6)):
        for item in block(cell, "train", 0, 0)[:20]:
            assert {*NOTATION.question(item), *NOTATION.answer(item)} <= set(NOTATION.vocabulary)


def test_tasks_without_running_totals_are_refused_with_those_that_have_them():
    with pytest.raises(TaskError, match=r"add_float has no running totals.*sum_integers"):
        RunningTotals([TASKS["add_float"]])
    with pytest.raises(TaskError, match="no task sum_integers; it has: multiply_hard_integer"):
        RunningTotals([PRODUCT]).question(total(1, 2))


@given(st.integers(2, 6), st.integers(0, 6), st.integers(1, 20), st.integers(0, 2**64 - 1))
def test_terms_are_as_many_as_asked_for_and_the_longest_has_all_of_the_digits(fewest, more, digits, word):
    operands = several(fewest, fewest + more)(Integer(10**digits - 1), Integer(10 ** (digits - 1)), word)
    assert operands
    values = operands[0].values
    assert fewest <= len(values) <= fewest + more
    assert max(len(str(value)) for value in values) == digits
    assert 0 not in values
