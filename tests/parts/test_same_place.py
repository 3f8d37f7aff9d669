"""Kinds of digits: 1, 2, 3 in the last number, 4, 5, 6 in the one before; the place below, the same, the one above."""

from collections.abc import Sequence

import torch
from hypothesis import given
from hypothesis import strategies as st

from lab.parts.same_place import NEIGHBOURS, NUMBERS, KindBias, SamePlace, SamePlaceConfig, one_hot, pairs
from lab.text.places import row_spots

KINDS = 1 + NUMBERS * (2 * NEIGHBOURS + 1)


def kinds(words: Sequence[str]) -> torch.Tensor:
    """The kind of every pair of tokens of a row."""
    return pairs(row_spots(words, len(words)), NEIGHBOURS)


def biased(text: str) -> dict[int, int]:
    """The digits for which the last character of a text has a bias, with their kinds."""
    return {key: kind for key, kind in enumerate(kinds(list(text))[-1].tolist()) if kind}


def read(text: str, places: dict[int, int]) -> dict[str, str]:
    """The digits themselves, by kind."""
    return {str(kind): text[place] for place, kind in sorted(places.items(), key=lambda item: item[1])}


def test_an_answer_begins_with_the_ones_of_both_numbers_and_the_tens_next_to_them():
    assert read("4321+98=", biased("4321+98=")) == {"2": "9", "3": "8", "5": "4", "6": "3"}


def test_the_hundreds_are_written_from_the_hundreds_and_their_neighbours():
    assert read("4321+98=32", biased("4321+98=32")) == {"1": "8", "4": "3", "5": "2", "6": "1"}


def test_a_sum_of_floats_begins_at_the_lowest_decimal_that_there_is():
    text = "52.1+4.3="  # 1.25 + 3.4: hundredths first, of which 3.4 has none
    assert read(text, biased(text)) == {"3": "4", "5": "5", "6": "2"}


def test_the_ones_of_floats_follow_their_tenths_across_the_point():
    text = "52.1+4.3=56."
    assert read(text, biased(text)) == {"1": "4", "2": "3", "4": "2", "5": "1"}


def test_in_scientific_notation_digits_of_one_power_of_ten_are_of_one_place():
    text = "3e5.1+2e5.2=3e"  # 1.5e3 + 2.5e2: the lowest digit is the tens, which 1.5e3 does not have
    assert read(text, biased(text)) == {"2": "5", "3": "2", "6": "5"}
    assert read(f"{text}5", biased(f"{text}5")) == {"1": "5", "2": "2", "5": "5", "6": "1"}


def test_an_exponent_is_written_from_exponents():
    text = "32e5.1+41e5.2="
    assert read(text, biased(text)) == {"2": "4", "3": "1", "5": "3", "6": "2"}


def test_each_part_of_a_fraction_is_of_that_part():
    assert read("31/7*54/2=", biased("31/7*54/2=")) == {"2": "5", "3": "4", "5": "3", "6": "1"}
    assert read("31/7*54/2=9/", biased("31/7*54/2=9/")) == {"2": "2", "5": "7"}


def test_numbers_farther_back_and_the_number_being_written_have_no_bias():
    assert biased("9 4+5=") == {4: 2, 2: 5}
    assert biased("9 4+5=1") == {4: 1, 2: 4}


def test_text_has_no_bias_and_separators_outside_of_numbers_are_text():
    assert kinds(list("e . the / a")).count_nonzero() == 0


def test_what_is_passed_over_ends_no_number():
    words = ["7", "", "4", "+", "2", "="]
    assert kinds(words)[-1].tolist() == [5, 0, 6, 0, 2, 0]


@given(st.text("0123456789./e+= ", max_size=30), st.text("0123456789./e+= ", max_size=10))
def test_what_is_written_later_changes_nothing(text, more):
    found, length = kinds(list(text + more)), len(text)
    assert torch.equal(found[:length, :length], kinds(list(text)))
    assert torch.equal(found, found.tril(-1))


@given(st.integers(1, 10**12), st.integers(1, 10**12))
def test_while_a_sum_is_written_the_digits_of_its_place_are_those_that_are_added(a, b):
    first, second, answer = (str(number)[::-1] for number in (a, b, a + b))
    text = f"{first}+{second}={answer}"
    found = kinds(list(text))
    begin = text.index("=")
    for place in range(len(answer)):
        row = found[begin + place].tolist()
        assert [text[key] for key, kind in enumerate(row) if kind == 5] == list(first[place : place + 1])
        assert [text[key] for key, kind in enumerate(row) if kind == 2] == list(second[place : place + 1])


def test_the_bias_is_a_number_for_each_layer_head_and_kind_and_nothing_for_kind_0():
    part = SamePlace(SamePlaceConfig(), layers=2, heads=3)
    torch.nn.init.ones_(part.bias)
    assert part.table().shape == (2, 3, KINDS)
    assert part.table()[..., 0].count_nonzero() == 0
    assert part.table()[..., 1:].eq(1).all()


def test_a_layer_adds_its_own_numbers_to_the_scores_of_pairs():
    table_LHC = torch.zeros(2, 2, KINDS)
    table_LHC[1, 1, 5] = 30.0
    kinds_BQK = torch.tensor([[[0, 0, 0], [0, 0, 0], [5, 0, 0]]])
    act = KindBias(table_LHC, one_hot(kinds_BQK, KINDS).float())
    mask = torch.full((3, 3), -1e9).triu(1)[None, None]
    assert torch.equal(act.mask(0, mask), mask.expand(-1, 2, -1, -1))
    added = act.mask(1, mask) - mask
    assert added[0, 1, 2, 0] == 30
    assert added.count_nonzero() == 1


def test_digits_of_other_alphabets_are_text():
    assert kinds(["4", "+", "³", "="]).count_nonzero() == kinds(["4", "+", "x", "="]).count_nonzero()
