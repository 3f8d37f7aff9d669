"""Numbers as they are written in messages. Each golden case says why it is read as it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.numbers.representations import Float, Fraction, Integer, Scientific
from lab.numbers.taxonomy import INTEGER
from lab.text.answers import ALL_READINGS, extract
from lab.text.final_number import final, last_box
from lab.text.written_numbers import Written, at_start, first, last
from tests.text.linear import ATOMS, assert_linear

REPRESENTATIONS = (Integer, Float, Fraction, Scientific)
WHOLE = Integer.pattern.pattern


@pytest.mark.parametrize(
    "text",
    [
        "5",
        "5.",  # the end of a sentence
        "5, which",  # a comma before a word
        "5!",  # a cry, not a factorial
        "5...",
        "(5)",
        "[5]",
        "{5}",
        "'5'",
        "**5**",
        "`5`",
        "#5",
        "$5$",
        r"\(5\)",
        r"\boxed{5}",
        r"\text{5}",
        "Answer:5",
        "x = 5",
        "=5",
        "5 apples",  # a unit after a space
        "5 \N{MULTIPLICATION SIGN} 3",  # an operator with spaces around it stands between two numbers
        "5 - 3",
        "5\N{EM DASH}no more",  # punctuation
        "5\n300",  # no number goes on in the next line
        "\u7b54\u6848\u662f5\u3002",  # Chinese: no spaces between words
        "5\u4e2a",
    ],
)
def test_a_number_that_stands_alone_is_five(text):
    assert first(text, WHOLE) == "5"
    assert first(text, INTEGER.pattern) == "5"


NOT_FIVE = {
    "a part of another number": [
        *("5.5", "0.5", ".5", "5,000", "5'000", "5_000", "5 000", "5\u00a0000", "5\u202f000", "1,005"),
        *(r"5\,000", "5{,}000", "1 005 000", "5,00,000", "5,5", "55", "5\u0665"),
    ],
    "with a sign": ["-5", "\u22125", "\u20135", "= - 5", "$-5$", "minus 5", "negative 5", "\u8d1f5", "\u00b15"],
    "a fraction": [
        *("5/7", "3/5", "5 / 7", "3 / 5", "2 3/5", r"\frac{5}{7}", r"\frac{ 3 }{ 5 }", r"\dfrac{3}{5}", "5\u20447"),
        *(r"5\frac{1}{2}", "5\u00bd", "5 1/2"),
    ],
    "with an exponent": [
        *("5e3", "5E+8", "1.5e5", "1.5e-5", "10^5", "10^{5}", "10**5", "10\u2075", "5^2", "5\u00b2", "5^{2}"),
        *("5 \u00d7 10^3", r"5 \times 10^{3}", "1.5 \u00b7 10^5", "5*10**8"),
    ],
    "in an expression without spaces": ["5-3", "3+5", "5*3", "x-5", "5/x", "2**5", "5^n", r"5\times3", "(1+2)-5"],
    "in a word": ["x5", "5th", "5x", "5kg", "GPT-5", "a 5-digit number", "x_5", "x_{5}", "0x5", "km/5"],
    "in a time, a date or a version": ["12:05:5", "5:30", "2024-01-5", "1/5/2024", "v5.0.1", "1.2.3.5", "5..7", "5~7"],
    "scaled": ["5%", "5 %", r"5\%", "5 million", "5\u4e07"],
    "in a formula": [r"\sqrt{5}", "\u221a5", r"5\sqrt{2}", r"5\pi"],
}


@pytest.mark.parametrize(("why", "text"), [(why, text) for why, texts in NOT_FIVE.items() for text in texts])
def test_a_part_of_something_else_is_not_five_in_any_reading(why, text):
    assert first(text, WHOLE) != "5"
    assert first(f"so: {text} it is", WHOLE) != "5"
    for reading in ("strict", "loose", "final"):
        assert extract(text, Integer, reading) != "5", why
        assert extract(text, Float, reading) != "5.0", why


def test_a_plus_is_no_part_of_the_grammar_but_of_a_number():
    assert first("+5", WHOLE) is None
    assert first("+5", INTEGER.pattern) == "+5"
    assert extract("+5", Integer, "final") == "5"
    assert first("12 -5", INTEGER.pattern) == "12"  # a minus after a number is an operator


@pytest.mark.parametrize(
    ("text", "representation"),
    [("-3/4", Fraction), ("2 3/4", Fraction), ("13/4", Fraction), ("3/4/5", Fraction), ("3/41", Fraction)],
)
def test_no_other_fraction_is_three_quarters(text, representation):
    for reading in ALL_READINGS[:3]:
        assert extract(text, representation, reading) != "3/4"


def test_a_significand_is_not_a_float():
    for text in ("1.5e-8", "1.5e8", "1.5 \N{MULTIPLICATION SIGN} 10^8", r"1.5 \times 10^{8}", "1.5.2", "1.5%", "-1.5"):
        for reading in ALL_READINGS[:3]:
            assert extract(text, Float, reading) is None, text


@pytest.mark.parametrize(
    ("text", "representation", "expected"),
    [
        ("The answer is 12 + 30 = 42.", Integer, "42"),
        ("42 (I added 12 and 30) is 42", Integer, "42"),
        ("1,234,567", Integer, "1234567"),
        ("12,34,567", Integer, "1234567"),  # India
        ("12,3456,7890", Integer, "1234567890"),  # China, Japan
        ("1.234.000", Integer, "1234000"),  # more than one point can only separate groups
        ("1.234", Integer, None),  # in English, a decimal
        ("1,234", Integer, "1234"),
        ("1{,}234{,}567", Integer, "1234567"),
        (r"1\,234\,567", Integer, "1234567"),
        (r"1,\!234", Integer, "1234"),
        ("15.0", Integer, "15"),
        ("15.000", Integer, None),  # 15, or 15 thousand with a point between groups
        ("15.000", Float, "15.0"),
        ("1.5e1", Integer, None),  # the paper's integers have no exponent
        ("007", Integer, "7"),
        ("12,5", Float, "12.5"),  # not groups of three, so a decimal comma
        ("1.234,5", Float, "1234.5"),
        ("1,234.50", Float, "1234.5"),
        ("0,125", Float, "0.125"),  # no group begins with 0
        ("1,234", Float, "1234.0"),
        (".5", Float, "0.5"),
        ("12", Float, "12.0"),
        (r"\frac{3}{4}", Fraction, "3/4"),
        (r"$\dfrac{3}{4}$", Fraction, "3/4"),
        (r"\boxed{\frac{ 3 }{ 4 }}", Fraction, "3/4"),
        ("3 / 4", Fraction, "3/4"),
        ("2 3/4", Fraction, "11/4"),
        (r"2\frac{3}{4}", Fraction, "11/4"),
        ("1,000/7", Fraction, "1000/7"),
        ("6/8", Fraction, "6/8"),  # to reduce it is part of the question
        ("2", Fraction, "2/1"),
        ("0.75", Fraction, None),
        ("1.5E8", Scientific, "1.5e8"),
        ("1.5e+8", Scientific, "1.5e8"),
        ("1.5 \N{MULTIPLICATION SIGN} 10^8", Scientific, "1.5e8"),
        (r"1.5 \times 10^{8}", Scientific, "1.5e8"),
        (r"\boxed{1.23 \times 10^6}", Scientific, "1.23e6"),
        ("1.5\u00b710\u2078", Scientific, "1.5e8"),
        ("1.5*10^8", Scientific, "1.5e8"),
        ("3e5", Scientific, "3.0e5"),
        ("10^5", Scientific, "1.0e5"),
        ("15.0e7", Scientific, "15.0e7"),  # to place the point is part of the question
        ("150000000", Scientific, None),  # and so is the notation
        ("1.5e-8", Scientific, None),
        ("1.5 \u00d7 10\u207b\u2078", Scientific, None),
        ("-5", Integer, None),  # the paper's numbers have no sign
        ("1,2,3", Integer, None),
        ("12 on 2024-01-05", Integer, None),
        ("12, that is 5 million", Integer, None),
    ],
)
def test_the_final_number_is_read_however_it_is_written(text, representation, expected):
    assert extract(text, representation, "final") == expected
    assert extract(f"It is 7. So {text}", representation, "final") == expected
    assert extract(f"{text}.\n", representation, "final") == expected


def test_the_last_box_may_hold_braces_and_must_be_closed():
    assert last_box(r"\boxed{1{,}234} \boxed{\frac{3}{4}} \boxed{5") == r"\frac{3}{4}"
    assert last_box(r"\boxed{1} }") == "1"
    assert last_box(r"\boxed{") is None
    assert final(r"**7** \boxed{\frac{3}{4}} 8") == Written("", "3", denominator="4")


INTEGERS = st.integers(0, 10**40)
WAYS = ("{:,}", "{:_}", "{}", "+{}", "**{}**", r"\boxed{{{}}}", "$ {} $", "x = {}.", "({})", "{}\n", "{} apples")


@given(INTEGERS, st.sampled_from(WAYS))
def test_an_integer_is_read_back_in_every_way_of_writing(number, way):
    assert extract(f"12 and 345 make {way.format(number)}", Integer, "final") == str(number)


@given(st.fractions(0, 10**12), st.sampled_from(["{}/{}", r"\frac{{{}}}{{{}}}", "{} / {}", "{:,}/{:,}"]))
def test_a_fraction_is_read_back_in_every_way_of_writing(number, way):
    written = way.format(*number.as_integer_ratio())
    assert extract(f"7/5: {written}.", Fraction, "final") == f"{number.numerator}/{number.denominator}"


POWERS = ("e", "E+", r" \times 10^", "*10**")


@given(st.integers(1, 9), st.integers(1, 10**12), st.integers(0, 99), st.sampled_from(POWERS))
def test_a_scientific_number_is_read_back_in_every_way_of_writing(leading, decimals, power, way):
    expected = f"{leading}.{str(decimals).rstrip('0')}e{power}"
    assert extract(f"2.5e7 makes {leading}.{decimals}{way}{power}", Scientific, "final") == expected


MESSY = st.text("0123456789.,/e-+^* x=\n'_{}\\\u2212\u00d7\u202f:%", max_size=30)


@given(MESSY)
def test_the_first_number_is_whole(text):
    """What is next to it cannot be a digit, nor a separator, sign or letter that joins it to one."""
    number = first(text, WHOLE)
    if number is not None:
        around = text.replace(number, "#", 1)
        assert at_start(number, WHOLE) == number
        assert "#" in around


@given(MESSY, st.sampled_from(REPRESENTATIONS))
def test_what_the_final_reading_finds_is_of_the_grammar(text, representation):
    found = extract(text, representation, "final")
    assert found is None or representation.pattern.fullmatch(found)


@given(MESSY, MESSY)
def test_the_last_number_is_the_same_after_any_other_line(before, text):
    if any(map(str.isdigit, text)):
        assert last(f"{before}\n{text}") == last(text)


def test_a_number_of_any_length_is_read():
    """int() refuses texts of more than 4,300 digits."""
    digits = "1234567890" * 1000
    assert extract(f"It is {digits}.", Integer, "final") == digits
    assert extract(digits, Integer, "strict") == digits
    assert extract(f"1 2/{digits}", Fraction, "final") is None  # a mixed number would have to be multiplied out
    grouped = f"{int('9' * 4000):,}"
    assert extract(f"so 12 + 3 = {grouped}", Integer, "final") == "9" * 4000
    assert extract(" 111" * 5000, Integer, "final") == "111" * 5000


@pytest.mark.slow
@pytest.mark.parametrize("representation", REPRESENTATIONS)
@pytest.mark.parametrize("reading", ALL_READINGS)
@pytest.mark.parametrize("around", ["{}", r"\boxed{{{}}}", "12 {} x5"])
def test_a_megabyte_is_read_in_time_in_proportion_to_its_length(representation, reading, around):
    more = ("-", "(", "1-", "1,234,", "1{,}234{,}", r"\frac{1}{2} ", "1\u202f", "{", "a1 ", "12 + 30 = 42; ")
    for atom in (*ATOMS, *more):
        assert_linear(
            lambda text: extract(around.format(text), representation, reading), atom, longest=2**18, seconds=0.1
        )
