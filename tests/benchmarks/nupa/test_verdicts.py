"""Golden cases are worked out by hand from the rules of evalchemy's scorers (sources in verdicts.py); those marked *
are in evalchemy's or MarinSkyRL's own tests."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.benchmarks.nupa.verdicts import extract, verdict
from lab.errors import TaskError

N, D, F, S = "Integer", "Float", "Fraction", "ScientificNotation"

READ = [
    # text, format, what direct reads, what loose reads
    ("The answer is 9.9, because 9.9 is larger.", D, "9.9", "9.9"),  # *
    ("I think the answer is 9.9", D, None, None),  # *
    ("So the answer is 123", N, "123", "123"),  # *
    ("5.04E+04", S, "5.04e04", "5.04e04"),  # *
    ("1.5e-8", S, "1.5e8", "1.5e8"),
    ("1.5e8.", S, "1.5e8", "1.5e8"),
    ("  46 is the sum", N, "46", "46"),
    ("46 = 12 + 34", N, "46", "46"),  # no lone number stands after "="
    ("12 + 34 = 46", N, "12", "46"),
    ("12 + 34 = 46 apples", N, "12", "12"),
    ("It is \\boxed{46}.", N, None, "46"),
    ("\\boxed{1} or \\boxed{46}$", N, None, "46"),
    ("\\boxed{46} it is", N, None, None),
    ("\\boxed{about 46}\n46", N, None, "46"),
    ("so \\(46\\)", N, None, "46"),
    ("\\(12/34\\)", F, None, "12/34"),
    ("7 and 8\nAnswer: 46", N, "7", "46"),
    ("7 and 8\nThus, the final result is 46!", N, "7", "46"),
    ("7, the answer: 46", N, "7", "7"),  # the words must begin a line
    ("Let me see.\n46", N, None, "46"),
    ("Let me see.\n46 apples", N, None, None),
    ("Let me see.\n9.9", N, None, None),
    ("9.9", N, "9", "9"),
    ("1,234", N, "1", "1"),
    ("12", D, None, None),
    ("-12", N, None, None),
    ("3<|end_think|>46", N, "3", "46"),
    ("<|start_think|>46", N, None, None),
    ("<|start_think|>3<|end_think|> 46", N, None, "46"),
    ("٤٦", N, "٤٦", "٤٦"),
    ("", N, None, None),
    (None, N, None, None),
]

SCORED = [
    # text, truth, format, exact match, digit match, dlength, format valid
    ("9.9", "9.9", D, 1, 1, 0, 1),  # *
    ("9.11", "9.9", D, 0, 1 / 2, 1, 1),  # *
    ("9.90", "9.9", D, 0, 1, 1, 1),  # *
    ("1,234", "1234", N, 0, 0, 3, 1),  # * read as 1
    ("123/456", "12/3456", F, 0, 3 / 6, 0, 1),  # * from the right: 23 has no digit of 12, 456 three of 3456
    ("5.04e4", "5.04e4", S, 1, 1, 0, 1),  # *
    ("1.23e-5", "1.23e5", S, 1, 1, 0, 1),  # *
    ("one half", "1/2", F, 0, 0, 2, 0),  # *
    ("23", "123", N, 0, 2 / 3, 1, 1),  # *
    ("2.340", "12.345", D, 0, 3 / 5, 1, 1),  # *
    ("12/3", "12/43", F, 0, 3 / 4, 1, 1),  # *
    ("1.23e5", "1.23e45", S, 0, 4 / 5, 1, 1),  # *
    ("1.00", "1.0", D, 0, 1, 1, 1),  # *
    ("2/4", "1/2", F, 0, 0, 0, 1),
    ("046", "46", N, 0, 1, 1, 1),
    ("٤٦", "46", N, 0, 0, 0, 1),
]


@pytest.mark.parametrize(("text", "form", "direct", "loose"), READ)
def test_an_answer_is_found_where_they_find_it(text, form, direct, loose):
    assert extract(text, form, "direct") == direct
    assert extract(text, form, "loose") == loose


@pytest.mark.parametrize(("text", "truth", "form", "exact", "digits", "dlength", "valid"), SCORED)
def test_an_answer_is_scored_as_they_score_it(text, truth, form, exact, digits, dlength, valid):
    found = verdict(text, truth, form)
    assert found == (exact, pytest.approx(digits), dlength, valid, 1 - valid)
    assert verdict(text, truth, form, "direct") == found


@pytest.mark.parametrize("truth", ["", "abc123", "nan", "1.5", "12 "])
def test_a_truth_of_another_format_is_refused(truth):
    with pytest.raises(TaskError, match="is not an answer in the format Integer"):
        verdict("123", truth, N)


def test_an_unknown_format_is_refused():
    with pytest.raises(TaskError, match="formats are Integer, Float, Fraction, ScientificNotation"):
        verdict("123", "123", "int")


numbers = st.integers(0, 10**30).map(str)


@given(numbers, numbers, st.sampled_from([".", "/"]))
def test_a_right_answer_alone_or_announced_is_right_in_both_readings(a, b, sign):
    truth, form = f"{a}{sign}{b}", D if sign == "." else F
    for reading in ("direct", "loose"):
        assert verdict(truth, truth, form, reading) == (1, 1, 0, 1, 0)
        assert verdict(f" The answer is {truth}.", truth, form, reading).exact_match == 1


@given(st.text(alphabet="0123456789=\\boxed{}()answer is.\n $", max_size=40), numbers)
def test_all_figures_stay_in_their_bounds_and_only_an_exact_match_has_every_digit_and_no_other(text, truth):
    found = verdict(text, truth, N)
    assert 0 <= found.digit_match <= 1
    assert found.format_valid + found.no_answer == 1
    assert (found.exact_match == 1) == (found.digit_match == 1 and found.dlength == 0 and found.format_valid == 1)
