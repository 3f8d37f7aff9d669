import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.numbers.metrics import PERFORMANCE_PRESERVING, WELL_LEARNED, Score, contiguous_passing, longest_passing, score
from lab.numbers.representations import Float, Fraction, Integer, Scientific


def test_figure_1_of_the_paper():
    result = score("425.925535321", "31415.92653582", Float)
    assert not result.exact_match
    assert result.digit_match == 8 / (8 + 5)
    assert round(result.digit_match, 2) == 0.62
    assert result.dlength == 3


def test_no_answer_has_no_digit_right_and_misses_all_of_them():
    assert score(None, "12/745", Fraction) == Score(False, 0.0, 5)


@pytest.mark.parametrize(
    ("answer", "truth", "representation", "digit_match", "dlength"),
    [
        ("07", "7", Integer, 1.0, 1),  # compared as text, 07 is not 7; a surplus digit costs no digit match
        ("1.50", "1.5", Float, 1.0, 1),
        ("10/8", "5/4", Fraction, 0.0, 2 - 1),
        ("124", "1234", Integer, 1 / 4, 1),  # right-aligned: only the last digit meets its own
        ("0.124", "0.1234", Float, 3 / 5, 1),  # left-aligned decimals
        ("1.5e17", "1.5e7", Scientific, 1.0, 1),
        ("99", "100", Integer, 0.0, 1),
    ],
)
def test_digits_are_matched_part_by_part(answer, truth, representation, digit_match, dlength):
    assert score(answer, truth, representation) == Score(False, pytest.approx(digit_match), dlength)


texts = {
    Integer: st.from_regex(r"[0-9]{1,30}", fullmatch=True),
    Float: st.from_regex(r"[0-9]{1,20}\.[0-9]{1,20}", fullmatch=True),
    Fraction: st.from_regex(r"[0-9]{1,20}/[0-9]{1,20}", fullmatch=True),
    Scientific: st.from_regex(r"[0-9]\.[0-9]{1,20}e[0-9]{1,3}", fullmatch=True),
}


@given(st.sampled_from(list(texts)).flatmap(lambda kind: st.tuples(st.just(kind), texts[kind], texts[kind])))
def test_scores_stay_in_range_and_only_equal_texts_match_exactly(drawn):
    kind, answer, truth = drawn
    result = score(answer, truth, kind)
    assert 0 <= result.digit_match <= 1
    assert result.dlength >= 0
    assert result.exact_match == (answer == truth)
    assert result.exact_match == (result.digit_match == 1 and result.dlength == 0)


def test_a_text_outside_of_the_grammar_is_refused():
    with pytest.raises(ValueError, match="not of the form"):
        score("1.5", "2", Integer)


def test_the_largest_passing_length_may_skip_failing_ones_and_the_contiguous_may_not():
    means = {3: 0.95, 4: 0.4, 5: 0.92, 6: 0.05}
    assert longest_passing(means, "exact_match", WELL_LEARNED) == 5
    assert contiguous_passing(means, "exact_match", WELL_LEARNED) == 3
    assert longest_passing(means, "exact_match", PERFORMANCE_PRESERVING) == 5
    assert longest_passing({3: 0.2}, "exact_match", WELL_LEARNED) == 0
    assert longest_passing({3: 0.05, 4: 0.3}, "dlength", WELL_LEARNED) == 3
    assert longest_passing({3: 0.05, 4: 0.3}, "dlength", PERFORMANCE_PRESERVING) == 4
