from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lab.parts.coupled import FAR_KIND, HIDDEN, hide, text_positions
from lab.parts.same_place import pairs
from lab.text.places import RowSpots, row_spots, row_spots_downward


def positions(text: Sequence[str]) -> list[int]:
    return text_positions(np.array([character.isdigit() for character in text])).tolist()


def test_a_number_counts_as_one_token():
    assert positions("a 4321+98=") == [0, 1, 2, 2, 2, 2, 3, 4, 4, 5]
    assert positions("77x") == [0, 0, 1]


@given(st.text("12+ a=", max_size=12), st.integers(1, 9), st.text("12+ a", max_size=6))
def test_positions_are_causal_and_know_no_length(before, digits, after):
    text = f"{before}+{'8' * digits}+{after}"
    found = positions(text)
    assert [positions(text[: end + 1])[-1] for end in range(len(text))] == found
    assert found[len(before) + 1 + digits :] == positions(f"{before}+8+{after}")[len(before) + 2 :]


def seen(text: str, window: int, ordinary: bool = False, operands: int = 2, words: str = "all") -> str:
    """What the last token of a text sees; what is hidden is written as a dot."""
    spots = RowSpots.stacked([row_spots(list(text), 1, ordinary, operands)])
    row = hide(pairs(spots, window), spots, words)[0, 0]
    return "".join("." if kind == HIDDEN else word for word, kind in zip(text, row.tolist(), strict=True))


def test_a_token_sees_text_itself_and_the_digits_of_the_place_that_comes_next():
    assert seen("is 4321 + 98765 =", 0) == "is 4... + 9.... ="
    assert seen("is 4321 + 98765 = 3", 0) == "is .3.. + .8... = 3"
    assert seen("is 4321 + 98765 = 32", 1) == "is .321 + .876. = .2"
    assert seen("is 4321 + 98765 = 3208", 1) == "is ...1 + ...65 = ...8"


def test_operands_see_no_digits_but_their_own():
    assert seen("is 4321 and", 1) == "is .... and"
    assert seen("is 4321 and 98", 1) == "is .... and .8"
    assert seen("is 4321 and 98?", 1) == "is 43.. and 98?"
    assert seen("length of 4321 is", 1, operands=1) == "length of 43.. is"


def test_the_kind_of_a_far_digit_that_fades_says_how_many_places_it_is_away():
    spots = RowSpots.stacked([row_spots(list("8 + 4321 + 98765 = 32"), 1)])  # the hundreds digit is next
    row = hide(pairs(spots, 0), spots, far="fading")[0, 0].tolist()
    far = {place: FAR_KIND - kind for place, kind in enumerate(row) if kind <= FAR_KIND}
    assert far == {0: 2, 4: 2, 5: 1, 7: 1, 11: 2, 12: 1, 14: 1, 15: 2, 19: 1}
    assert row[6] > 0
    assert row[13] > 0


@pytest.mark.parametrize("ordinary", [False, True])
@pytest.mark.parametrize(
    "text", ["1 a 12 + 345 = 753 .", "is 5.21 + 8.43 = 36.5 .", "is 1.5e3 + 2.5e12 = 4 .", "77 and 1/2"]
)
def test_how_far_a_digit_is_does_not_depend_on_later_tokens(text, ordinary):
    def kinds(words):
        spots = RowSpots.stacked([row_spots(words, len(words), ordinary, 2)])
        return hide(pairs(spots, 1), spots, far="fading")[0]

    whole = kinds(list(text))
    for end in range(1, len(text)):
        assert torch.equal(kinds(list(text[:end]))[-1], whole[end - 1, :end])


@given(st.integers(5, 60))
def test_what_a_token_of_the_question_sees_of_digits_that_fade_does_not_grow_with_their_number(digits):
    text = f"{'1' * digits}+{'2' * digits}="
    spots = RowSpots.stacked([row_spots(list(text), len(text), operands=2)])
    far = FAR_KIND - hide(pairs(spots, 0), spots, far="fading")[0]
    assert far[3, :4].tolist() == [3, 2, 1, FAR_KIND]  # the digit itself is of kind 0: it is not far
    assert (far[digits, :digits] == torch.arange(digits)).all()  # a word: so many places above the lowest digit
    assert (far[digits + 3, digits + 1 : digits + 3] == torch.tensor([2, 1])).all()


def test_digits_that_fade_are_those_that_would_be_hidden():
    for text in ("is 4321 + 98765 = 32", "77 and 11 + 22 = 3", "is 12.34 + 567.8 = 4", "is 4321 and"):
        spots = RowSpots.stacked([row_spots(list(text), len(text))])
        kinds = pairs(spots, 1)
        assert torch.equal(hide(kinds, spots, far="fading") <= FAR_KIND, hide(kinds, spots) == HIDDEN)
        assert torch.equal(hide(kinds, spots, far="seen") == FAR_KIND, hide(kinds, spots) == HIDDEN)


@pytest.mark.parametrize("words", ["last", "nearest", "none"])
def test_words_are_hidden_from_digits_whatever_happens_to_far_digits(words):
    spots = RowSpots.stacked([row_spots(list("is 4321 plus 98765 = 32"), 23)])
    kinds, digits = pairs(spots, 1), torch.from_numpy(spots.own)[:, None, :, 1] > 0
    hidden = (hide(kinds, spots, words) == HIDDEN) & ~digits
    assert hidden.any()
    assert torch.equal(hide(kinds, spots, words, far="seen") == HIDDEN, hidden)
    assert torch.equal(hide(kinds, spots, words, far="fading") == HIDDEN, hidden)


def test_numbers_as_people_write_them_are_seen_from_their_ends():
    assert seen("is 1234 + 56789 =", 0, ordinary=True) == "is ...4 + ....9 ="
    assert seen("is 1234 + 56789 = 32", 1, ordinary=True) == "is 123. + .678. = .2"
    assert seen("is 12.34 + 567.8 = 4", 0, ordinary=True) == "is ...3. + ....8 = 4"


def test_numbers_beyond_the_last_two_are_hidden():
    assert seen("77 and 11 + 22 = 3", 1) == ".. and 11 + 22 = 3"


def test_only_whole_tokens_are_separators():
    spots = row_spots(["5", "/e", "3"], 1)
    assert spots.inside.tolist() == [True, False, True]


def test_a_full_stop_is_no_point():
    assert seen("Add 4321 to 98. That is", 0) == "Add 4... to 9.. That is"
    assert seen("Add 4321 to 98. That is 3", 0) == "Add .3.. to .8. That is 3"


def test_digits_see_no_words_but_the_first_of_the_text():
    assert seen("add 4321", 0, words="none") == "a......1"
    assert seen("add 4321 to 98: it is", 0, words="none") == "add 4... to 9.: it is"
    assert seen("add 4321 to 98: it is 3", 0, words="none") == "a....3.......8........3"
    assert seen("add 12.34 to 5.8: it is 4", 0, True, words="none") == "a......3.......8........4"
    assert seen("5.6 + 57.5 = 52.", 0, words="none") == "..6......5....2."


def test_an_answer_sees_the_last_word_before_it_and_the_first_of_the_text():
    assert seen("add 4321 to 98: it is =", 0, words="last") == "add 4... to 9.: it is ="
    assert seen("add 4321 to 98: it is =3", 0, words="last") == "a....3.......8........=3"
    assert seen("add 12.34 to 5.8: it is =4", 0, True, words="last") == "a......3.......8........=4"


def test_every_number_sees_the_last_word_before_it_and_the_first_of_the_text():
    assert seen("add =4321", 0, words="nearest") == "a...=...1"
    assert seen("add =4321 to", 0, words="nearest") == "add =.... to"
    assert seen("add 4321 to @98: it is", 0, words="nearest") == "add 4... to @9.: it is"
    assert seen("add 4321 to @98", 0, words="nearest") == "a...........@.8"
    assert seen("add 4321 to 98: it is =3", 0, words="nearest") == "a....3.......8........=3"
    assert seen("add 4321 to 98: it is =3, so", 0, words="nearest") == "add .... to 9.: it is =3, so"
    assert seen("4321 + 98", 0, words="nearest") == "...... .8"


def test_the_point_of_an_answer_sees_the_digit_before_it():
    """6.5 + 5.75 = 12.25: the digit 2 after the point depends on whether the tenths, 5 + 7, carried."""
    assert seen("5.6 + 57.5 = 52.", 0) == "..6 + ...5 = .2."
    assert seen("5.6 + 57.5 = 52.", 0, words="last") == "..6......5.. .2."
    assert seen("5.6 + 57.5 = 52.2", 0) == "... + .... = ...2"


def test_words_after_an_answer_see_all_words():
    assert seen("1 + 2 = 3, so", 0, words="last") == ". + 2 = 3, so"


def test_a_digit_of_a_question_sees_the_digits_of_its_own_place():
    spots = row_spots_downward([*"3581 + 2417"], 3, 2)
    assert pairs(spots, 0).tolist() == [[0, 1, *[0] * 9], [0, 0, 1, *[0] * 8], [0, 0, 0, 1, *[0] * 7]]
