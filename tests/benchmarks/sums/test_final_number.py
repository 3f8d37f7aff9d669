import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.benchmarks.sums.carry_free import CarryFree
from lab.benchmarks.sums.final_number import final_number, marked
from lab.benchmarks.sums.scoring import Sum
from lab.benchmarks.sums.two_integers import TwoIntegers, format_failure
from lab.config.evaluation import CarryFreeConfig, TwoIntegersConfig
from lab.engines.engine import Completion
from lab.numbers.taxonomy import INTEGER, TAGS, classify
from tests.text.linear import ATOMS, assert_linear

N = "1012915637"


@pytest.mark.parametrize(
    "text",
    [
        N,
        "1,012,915,637",
        "1 012 915 637",
        "1\N{NO-BREAK SPACE}012\N{NO-BREAK SPACE}915\N{NO-BREAK SPACE}637",
        "1'012'915'637",
        "1_012_915_637",
        r"1\,012\,915\,637",
        "1{,}012{,}915{,}637",
        f"**{N}**",
        "**1,012,915,637**",
        "**1,012,915,637.** Check: 500,000,000 + 512,915,637",
        "The sum is **1012915637**, of 2 numbers",
        rf"\boxed{{{N}}}",
        r"$$\boxed{1,012,915,637}$$",
        r"\boxed{1{,}012{,}915{,}637}",
        r"\boxed{10,1291,5637} in groups of 4",
        rf"\boxed{{\text{{{N}}}}}",
        rf"\boxed{{500000000 + 512915637 = {N}}}",
        rf"\boxed{{2}}, no: \boxed{{{N}}}, which has 10 digits",
        rf"**7** \boxed{{{N}}} **8**",
        rf"\boxed{{x}} is {N}",
        f"500000000 + 512915637 = {N}",
        f"500000000 + 512915637 = {N}.\n",
        f"47 and 12, so {N}",
        f"{N}.0",
        f"2**10**2, {N}",
        "add 12, 345, 1,012,915,637",
        f"${N}$",
    ],
)
def test_the_number_that_a_response_ends_on_is_read_however_it_is_written(text):
    assert final_number(text) == N


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("", None),
        ("no number", None),
        ("1.5", None),
        ("1.01e9", None),
        (r"\boxed{1.5}, or 2", None),
        ("-12", "-12"),
        ("12-13", None),  # a difference or a range, and neither of its parts
        ("+12", "+12"),
        ("1234,567", None),  # no group has four digits
        ("1,012 915,637", None),  # the same separator throughout
        ("12\n13", "13"),
        ("\N{ARABIC-INDIC DIGIT THREE}", None),
        ("**a** 5 **b** 6", "6"),
        ("** 5 ** 6", "6"),  # no bold: a space is within
        (r"\boxed{5", "5"),
        (r"\boxed{}", None),
        ("12.", "12"),
        ("x-12", None),
        ("12 + 30 = 42.", "42"),
        ("\N{MINUS SIGN}1234567", "-1234567"),
        ("12,34,567", "1234567"),
        ("1.234.000", "1234000"),
        (r"1.23 \times 10^6", None),
        (r"\boxed{1{,}234{,}567}", "1234567"),
    ],
)
def test_what_is_no_such_number_is_left_out(text, number):
    assert final_number(text) == number


@given(st.text("0123456789.,e+-* {}\\boxd\n'_", max_size=40))
def test_any_text_ends_on_an_ascii_integer_or_none(text):
    found = final_number(text)
    assert found is None or INTEGER.fullmatch(found)


@given(st.integers(0, 10**40), st.sampled_from(["{:,}", "{:_}", "**{}**", "**{:,}**", r"\boxed{{{:,}}}", "is {}."]))
def test_every_number_is_read_back_in_every_way_of_writing(number, way):
    assert final_number(f"12 and 345 make {way.format(number)}") == str(number)


WORKING = r"To add them, write 1.2 \times 10^{15} + 3 \times 10^{15} = 4.2e15, so: "


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (WORKING + r"\boxed{4200000000000000}", "shows_work"),
        (WORKING + "**4,200,000,000,000,000**", "shows_work"),
        (r"About 4.2e15 it is: \boxed{4200000000000000}", "explanation"),
        (r"4.2e15 \boxed{4200000000000000}", "other"),
        (WORKING + r"\boxed{4.2 \times 10^{15}}", "scientific_notation"),
        (r"12 make \boxed{4.2e15}", "scientific_notation"),
        (WORKING + "4200000000000000", "scientific_notation"),
    ],
)
def test_an_answer_is_in_scientific_notation_only_if_the_marked_number_is(text, kind):
    assert format_failure(Completion(text, 1, 1, 0.0, "stop")) == kind


OPERANDS = Sum("123456789012345678901234567890", "987654321098765432109876543210")


def opened(benchmark):
    benchmark.problems = [OPERANDS]
    return lambda text: benchmark.score(0, Completion(text, 1, 1, 0.0, "stop"))


SCORING = {
    "two_integers": opened(TwoIntegers(TwoIntegersConfig(problems=1), seed=0)),
    "carry_free": opened(CarryFree(CarryFreeConfig(lengths=(2, 2), problems_per_length=1), seed=0)),
    "final_number": final_number,
    "marked": marked,
    "format_failure": lambda text: format_failure(Completion(text, 1, 1, 0.0, "stop")),
}


@pytest.mark.parametrize("name", SCORING)
@pytest.mark.parametrize("around", ["{}", r"\boxed{{{}}}", "**{}**", "12{}x"])
def test_scoring_takes_time_in_proportion_to_the_response(name, around):
    for atom in ATOMS:
        assert_linear(lambda text: SCORING[name](around.format(text)), atom, longest=2**13, seconds=1)


@pytest.mark.parametrize("kind", [classify, *TAGS.values()])
@pytest.mark.parametrize("before", ["", "1", "-"])
@pytest.mark.parametrize("digits", ["0", "1", "9", "09"])
def test_a_class_of_error_takes_time_in_proportion_to_the_answer(kind, before, digits):
    assert_linear(lambda text: kind(before + text, OPERANDS.answer), digits, longest=2**15, seconds=0.5)
