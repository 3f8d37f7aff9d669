"""All readings of a number agree on the places of its digits: those of problems, of rows and of models from scratch."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lab.config.notation import FormatConfig, TokenizerConfig
from lab.numbers.representations import Float, Fraction, Integer, Representation, Scientific, split_parts
from lab.numbers.tasks import TASKS
from lab.parts.abacus_ids import abacus
from lab.parts.token_facts import TokenFacts
from lab.probing.addition.positions import NotatedSums, Sums
from lab.probing.contrast import NOWHERE
from lab.text.notation import Notation
from lab.text.places import FRACTION, NO_SPOT, VALUE, row_spots, row_spots_downward
from lab.text.scratch_tokenizer import build_tokenizer

digits = st.text("0123456789", min_size=1, max_size=8)
numbers = st.one_of(
    st.tuples(digits, st.just(Integer)),
    st.tuples(st.builds("{}.{}".format, digits, digits), st.just(Float)),
    st.tuples(
        st.builds("{}.{}e{}".format, st.sampled_from("123456789"), digits, st.integers(0, 99)), st.just(Scientific)
    ),
)


def place_values(number: str, representation: Representation) -> list[int | None]:
    """The power of ten that each character of a number counts.

    None for characters that have no such place: separators, exponents, and all characters of a fraction.

    Args:
        number: the text of the number, highest digit first.
        representation: its representation.
    """
    if representation is Fraction:
        return [None] * len(number)
    parts = split_parts(number, representation)
    shift = int(parts[2]) if representation is Scientific else 0
    values: list[int | None] = [shift + place for place in reversed(range(len(parts[0])))]
    if len(parts) > 1:
        values += [None, *(shift - 1 - place for place in range(len(parts[1])))]
    return values + [None] * (len(number) - len(values))


@pytest.mark.parametrize(
    ("number", "representation", "values"),
    [
        ("1234", Integer, [3, 2, 1, 0]),
        ("12.50", Float, [1, 0, None, -1, -2]),
        ("1.75e3", Scientific, [3, None, 2, 1, None, None]),
        ("12/7", Fraction, [None] * 4),
    ],
)
def test_place_values_are_powers_of_ten(number, representation, values):
    assert place_values(number, representation) == values


@given(numbers, st.booleans())
def test_a_row_of_tokens_has_the_places_of_the_problem(number, ordinary):
    text, representation = number
    expected = [NOWHERE if value is None else value for value in place_values(text, representation)]
    written = text if ordinary else text[::-1]
    own = row_spots([*written, "="], 1, ordinary).own[:-1]
    found = [place if what == VALUE else NOWHERE for _, what, place in own.tolist()]
    assert found == (expected if ordinary else expected[::-1])


@given(digits, digits)
def test_the_parts_of_a_fraction_have_places_of_their_own(above, below):
    _, whats, places = row_spots([*f"{below[::-1]}/{above[::-1]}", "="], 1).own[:-1].T
    parts = [FRACTION] * len(below), [FRACTION + 1] * len(above)
    assert whats.tolist() == [*parts[0], 0, *parts[1]]
    assert places.tolist() == [*range(len(below)), 0, *range(len(above))]


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_a_model_from_scratch_and_its_instruments_count_the_same_places(a, b):
    notation = Notation(TokenizerConfig(), FormatConfig(reverse="integer"), [TASKS["add_integer"]])
    sums = Sums.of(NotatedSums(notation, build_tokenizer(notation.vocabulary)), [(a, b)])
    ids_T = abacus(sums.tokens_BT, TokenFacts.of(notation.vocabulary))[0]
    for number, at_BK in ((a, sums.a_at_BK), (b, sums.b_at_BK), (a + b, sums.answer_at_BK)):
        at = at_BK[0][at_BK[0] != NOWHERE]
        places = [place for place in reversed(place_values(str(number), Integer)) if place is not None]
        assert (ids_T[at] - 1).tolist() == places
        words = [notation.vocabulary[token] for token in sums.tokens_BT[0, at].tolist()]
        assert torch.equal(at, at.sort().values)
        assert row_spots([*words, "="], 1).own[:-1, 2].tolist() == places


@pytest.mark.parametrize(("number", "ordinary"), [("{}e3.4", False), ("4.3e{}", True)])
def test_an_exponent_of_many_digits_leaves_places_that_fit_into_a_tensor(number, ordinary):
    def places(exponent):
        return row_spots([*number.format(exponent), " "], 1, ordinary).own[:, 2]

    assert places("11").max() == 11
    assert places("9" * 40).max() < 2**31


rows = st.lists(st.sampled_from([*"0123456789/e.", "", " plus ", "x"]), min_size=1, max_size=30)


@given(rows, st.booleans(), st.integers(0, 2), st.data())
def test_a_row_whose_beginning_was_read_before_has_the_same_spots(words, ordinary, operands, data):
    last = data.draw(st.integers(1, len(words)))
    whole = row_spots(words, len(words), ordinary, operands)  # reads the row from its first word on
    part = row_spots(words, last, ordinary, operands)  # may use what it knows of the beginning
    for of_last, of_all in ((part.following, whole.following), (part.starts, whole.starts)):
        assert of_last.tolist() == of_all[len(words) - last :].tolist()
    assert part.own.tolist() == whole.own.tolist()
    assert part.inside.tolist() == whole.inside.tolist()


def test_an_answer_that_begins_with_its_highest_digit_counts_its_places_down():
    """78 + 5 = 083: the answer has one digit more than 78, for the last carry."""
    spots = row_spots_downward([*"78+5=083"], 8, operands=2)
    assert spots.own[:, 2].tolist() == [1, 0, 0, 0, 0, 2, 1, 0]
    assert spots.own[:, 0].tolist() == [1, 1, 0, 2, 0, 3, 3, 3]
    assert spots.following[[0, 1, 3, 4, 5, 6, 7], 2].tolist() == [1, 0, 0, 2, 1, 0, -1]
    assert spots.following[[0, 1, 3, 4, 5, 6, 7], 0].tolist() == [1, 1, 2, 3, 3, 3, 3]
    assert tuple(spots.following[2]) == NO_SPOT
    assert spots.starts.tolist() == [0, 0, 0, 3, 0, 5, 5, 5]


def test_decimals_of_an_answer_follow_its_point_whatever_stands_before_it():
    spots = row_spots_downward([*"12.5+3.25=015.7"], 15, operands=2)
    assert spots.own[:, 2].tolist() == [1, 0, 0, -1, 0, 0, 0, -1, -2, 0, 2, 1, 0, 0, -1]
    assert spots.following[9:, 2].tolist() == [2, 1, 0, -1, -1, -2]


def test_without_enough_numbers_before_it_the_last_number_is_part_of_a_question():
    assert row_spots_downward([*"is 12 + 9034"], 1, operands=2).own[-4:, 2].tolist() == [3, 2, 1, 0]


@given(rows, st.integers(0, 2), st.data())
def test_the_last_tokens_of_a_row_have_the_spots_that_they_have_among_all(words, operands, data):
    last = data.draw(st.integers(1, len(words)))
    whole = row_spots_downward(words, len(words), operands)
    part, cut = row_spots_downward(words, last, operands), whole.part(len(words) - last, len(words))
    for found, expected in zip(part, cut, strict=True):
        assert found.tolist() == expected.tolist()


@given(st.integers(0, 10**12), st.integers(0, 10**12))
def test_a_sum_has_the_same_places_while_it_is_written_and_afterwards(a, b):
    length = 1 + max(len(str(a)), len(str(b)))
    row = [*f"{a} + {b} = {a + b:0{length}}"]
    during, after = (row_spots_downward(words, len(words), 2) for words in (row, [*row, " "]))
    assert during.own.tolist() == after.own[:-1].tolist()
    assert during.inside.tolist() == after.inside[:-1].tolist()
