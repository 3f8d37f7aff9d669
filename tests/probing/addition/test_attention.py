"""The native adder (lab/probing/benchmark/families/ones_first.py) has heads in layer 0 that look at one digit each:
a_k, b_k, a_{k-1}, b_{k-1}, and a decoy at a_k."""

import doctest

import pytest

import lab.probing.addition.attention
from lab.probing.addition.attention import Look, heads, table
from tests.probing.known_adders import native_adder


@pytest.fixture(scope="module")
def adder():
    return native_adder()


def test_each_head_is_found_at_its_digit(adder):
    found = {(head.layer, head.head): head.looks for head in heads(adder, 123, 456)}
    for head, number, below in [(0, "123", 0), (1, "456", 0), (2, "123", 1), (3, "456", 1), (4, "123", 0)]:
        looks = found[0, head]
        assert len(looks) == 3
        for place, look in list(enumerate(looks))[below:]:
            assert look[:2] == (number, place - below), (head, place)
            assert look.weight > 0.9


def test_heads_that_look_at_digits_come_first(adder):
    found = heads(adder, 55, 7)
    assert [head.weight for head in found] == sorted((head.weight for head in found), reverse=True)
    assert found[0].layer == 0


def test_the_table_has_a_row_for_each_digit_of_the_answer(adder):
    shown = table(adder, 95, 7, columns=3)
    assert [row[0] for row in shown.rows] == ["10[2]", "1[0]2", "[1]02"]
    assert len(shown.columns) == 4


def test_a_look_is_written_with_brackets_around_its_digit():
    assert str(Look("4321", 3, 0.984)) == "[4]321 98 %"
    assert doctest.testmod(lab.probing.addition.attention).failed == 0
