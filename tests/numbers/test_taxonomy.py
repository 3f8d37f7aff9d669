from itertools import groupby
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.numbers.taxonomy import CLASSES, classify, off_by_one, rounded, same_value, unit_step, wrong_length

numbers = st.integers(0, 10**40)
LONG = 100_000


@pytest.mark.parametrize(
    ("answer", "truth", "expected"),
    [
        # the four examples of the carry-free benchmark's own page
        ("8900", "8899", "carry_1d"),
        ("8762877458", "8762879458", "sub_1d"),
        ("978998798297", "978997898297", "order_2d"),
        ("76816619", "76789619", "value_nd"),
        # benchmark_notes, section 2
        ("58", "50", "carry_1d"),
        ("59", "50", "value_nd"),  # the bounds are strict
        ("110", "101", "order_2d"),
        ("321456", "123456", "value_nd"),
        # worked out by hand
        ("42", "50", "sub_1d"),
        ("41", "50", "value_nd"),
        ("999", "1000", "sub_1d"),  # the shorter is filled up with 0: one run of four digits
        ("01000", "999", "carry_1d"),
        ("10", "1", "order_2d"),  # filled up: 10 for 01
        ("231", "123", "value_nd"),  # the same digits, but three of them
        ("2131", "1232", "value_nd"),  # two runs
        ("-84", "84", "value_nd"),
        ("-0", "0", "correct"),
        ("+084", "84", "correct"),
    ],
)
def test_golden_answers_have_their_class(answer, truth, expected):
    assert classify(answer, truth) == expected
    assert same_value(answer, truth) == (expected == "correct")


def test_pictures_stack_the_classes_in_this_order():
    assert CLASSES == ("correct", "carry_1d", "sub_1d", "order_2d", "value_nd")


def by_whole_numbers(answer: str, truth: str) -> str:
    """The procedure of benchmark_notes, steps 3 to 7, to the letter."""
    predicted, true = int(answer), int(truth)
    if predicted == true:
        return "correct"
    if predicted < 0:
        return "value_nd"
    width = len(str(max(predicted, true)))
    columns = list(zip(str(predicted).zfill(width), str(true).zfill(width), strict=True))
    runs = [list(run) for differs, run in groupby(columns, lambda column: column[0] != column[1]) if differs]
    if len(runs) > 1:
        return "value_nd"
    p, t = ("".join(side) for side in zip(*runs[0], strict=True))
    if set(p) == set(t):
        return "order_2d" if len(p) == 2 else "value_nd"
    d = int(p) - int(t)
    return "carry_1d" if 1 <= d <= 8 else "sub_1d" if -8 <= d <= -1 else "value_nd"


@given(numbers, st.integers(-12, 12), st.integers(0, 40), st.integers(0, 3))
def test_an_answer_near_the_truth_is_classified_as_by_whole_numbers(truth, step, column, zeros):
    answer = truth + step * 10**column
    text = ("-" if answer < 0 else "") + "0" * zeros + str(abs(answer))
    assert classify(text, str(truth)) == by_whole_numbers(text, str(truth))
    assert off_by_one(text, str(truth)) == (abs(answer - truth) == 1)


@given(
    st.text("0189", min_size=1, max_size=6), st.text("0189", min_size=1, max_size=6), st.sampled_from(["", "+", "-"])
)
def test_any_two_texts_are_classified_as_by_whole_numbers(answer, truth, sign):
    assert classify(sign + answer, truth) == by_whole_numbers(sign + answer, truth)
    assert off_by_one(sign + answer, truth) == (abs(int(sign + answer) - int(truth)) == 1)
    assert wrong_length(sign + answer, truth) == (len(str(int(answer))) != len(str(int(truth))))


@given(numbers, st.integers(0, 5), st.sampled_from(["", "+"]))
def test_leading_zeros_and_a_plus_sign_do_not_matter(truth, zeros, sign):
    assert classify(sign + "0" * zeros + str(truth), "0" * zeros + str(truth)) == "correct"
    assert classify(sign + "0" * zeros + str(truth + 1), str(truth)) == classify(str(truth + 1), str(truth))


@given(st.text("0123456789", min_size=1, max_size=40), st.data())
def test_one_more_or_less_in_a_column_without_a_carry_is_a_unit_step(digits, data):
    column = data.draw(st.integers(0, len(digits) - 1))
    digit = int(digits[column])
    up, down = (f"{digits[:column]}{(digit + step) % 10}{digits[column + 1 :]}" for step in (1, -1))
    if digit < 9:
        assert classify(up, digits) == "carry_1d"
        assert unit_step(up, digits)
    if digit > 0:
        assert classify(down, digits) == "sub_1d"
        assert unit_step(down, digits)


@pytest.mark.parametrize(
    ("answer", "truth", "expected"),
    [
        ("8900", "8899", True),
        ("999", "1000", True),
        ("52", "50", False),
        ("50", "50", False),
        ("-1", "0", False),  # a sign is no digit
        ("61", "50", False),  # it differs by 11
        ("151", "141", True),
        ("202", "101", False),  # it differs by 1 in each of two runs
    ],
)
def test_a_unit_step_is_one_run_that_differs_by_1(answer, truth, expected):
    assert unit_step(answer, truth) == expected


@pytest.mark.parametrize(
    ("answer", "truth", "expected"),
    [
        ("1111111110111000", "1111111110111110", True),  # cut: the two-integers benchmark's example of lost precision
        ("123456789012345680", "123456789012345678", True),  # rounded, as a double is printed
        ("1300", "1250", True),  # a half may go up
        ("1200", "1250", True),
        ("1300", "1249", False),
        ("1200", "1199", True),
        ("20000", "19996", True),
        ("1000", "996", True),
        ("100", "55", False),  # no figure is left
        ("100000", "96", False),
        ("1250", "1250", False),
        ("1251", "1250", False),
        ("-1200", "1250", False),
        ("10", "9", False),
        ("0", "5", False),
        ("0", "96", False),
    ],
)
def test_rounding_leaves_fewer_figures_and_zeros_for_the_rest(answer, truth, expected):
    assert rounded(answer, truth) == expected


@given(st.integers(1, 10**31), st.integers(1, 30))
def test_what_is_rounded_or_cut_is_recognised(truth, places):
    unit = 10 ** min(places, len(str(truth)) - 1)
    for answer in (truth // unit * unit, (truth + unit // 2) // unit * unit):
        assert rounded(str(answer), str(truth)) == (answer != truth)


@pytest.mark.slow
@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_rounded_answers_are_those_that_some_rounding_gives(answer, truth):
    units = [10**places for places in range(1, len(str(truth)))]
    reachable = {value // unit * unit for unit in units for value in (truth, truth + unit // 2)}
    assert rounded(str(answer), str(truth)) == (answer != truth and answer in reachable)


@pytest.mark.parametrize("text", ["", "1.5", "1_000", "1,000", "\uff11\uff12", " 1", "1\n", "+-1", "1e3"])
def test_what_is_no_ascii_integer_is_refused(text):
    with pytest.raises(ValueError, match="not an ASCII integer"):
        classify(text, "1")
    with pytest.raises(ValueError, match="not an ASCII integer"):
        classify("1", text)


def test_a_negative_truth_is_refused():
    with pytest.raises(ValueError, match="negative"):
        classify("1", "-1")


@pytest.mark.parametrize(
    ("answer", "truth", "expected"),
    [
        ("7" * LONG, "84", "value_nd"),
        ("0" * LONG + "84", "84", "correct"),
        ("1" + "0" * LONG, "9" * LONG, "carry_1d"),
        ("9" * LONG, "1" + "0" * LONG, "sub_1d"),
        ("1" + "0" * LONG, "9" * (LONG - 1) + "1", "value_nd"),
        ("12" * LONG, "21" * LONG, "value_nd"),
        ("-" + "7" * LONG, "84", "value_nd"),
    ],
    ids=range(7),
)
def test_huge_texts_take_no_time(answer, truth, expected):
    start = perf_counter()
    assert classify(answer, truth) == expected
    assert unit_step(answer, truth) == (expected in ("carry_1d", "sub_1d"))
    for tag in (off_by_one, rounded, wrong_length):
        tag(answer, truth)
    assert perf_counter() - start < 1
