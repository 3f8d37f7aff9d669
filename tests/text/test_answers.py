import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.numbers.representations import REPRESENTATIONS, Float, Fraction, Integer, Scientific
from lab.text.answers import READINGS, decided, extract


@pytest.mark.parametrize(
    ("text", "representation", "strict", "loose"),
    [
        (" 1287", Integer, "1287", "1287"),
        (" 1287.\nSo", Integer, "1287", "1287"),
        (" the answer is 42", Integer, None, "42"),
        (" $42$", Integer, None, "42"),
        (" -3", Integer, None, "3"),
        (" 12", Float, None, None),
        (" 12.5.3", Float, "12.5", "12.5"),
        (" is 3/4", Fraction, None, "3/4"),
        (" 1.5e-8", Scientific, None, None),  # the released code reads 1.5e8
        (" 1.5e8", Scientific, "1.5e8", "1.5e8"),
        (" ٣", Integer, None, None),
        ("", Integer, None, None),
    ],
)
def test_the_two_readings_of_an_answer(text, representation, strict, loose):
    assert extract(text, representation, "strict") == strict
    assert extract(text, representation, "loose") == loose


@given(st.text(st.sampled_from("0123456789./e -=x\n"), max_size=30), st.sampled_from(list(REPRESENTATIONS.values())))
def test_what_is_read_is_of_the_grammar_and_in_the_text(text, representation):
    for reading in READINGS:
        answer = extract(text, representation, reading)
        assert answer is None or (representation.pattern.fullmatch(answer) and answer in text)


@given(
    st.text(st.sampled_from("0123456789./e -=x\n"), max_size=20),
    st.text(st.sampled_from("0123456789./e -=x\n"), max_size=20),
    st.sampled_from(list(REPRESENTATIONS.values())),
)
def test_once_decided_nothing_that_follows_changes_either_reading(begun, rest, representation):
    if decided(begun, representation):
        for reading in READINGS:
            assert extract(begun + rest, representation, reading) == extract(begun, representation, reading)
