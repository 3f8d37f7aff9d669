import decimal
import fractions

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.numbers.representations import Float, Fraction, Integer, Scientific, length, split_parts

naturals = st.integers(0, 10**30)


def decimal_of(number: Float | Scientific) -> fractions.Fraction:
    return fractions.Fraction(decimal.Decimal(str(number)))


@pytest.mark.parametrize(
    ("text", "representation", "canonical"),
    [
        ("007", Integer, "7"),
        ("0", Integer, "0"),
        ("1234.500", Float, "1234.5"),
        ("005.0", Float, "5.0"),
        ("0.050", Float, "0.05"),
        ("0.0", Float, "0.0"),
        ("10/8", Fraction, "5/4"),
        ("0/7", Fraction, "0/1"),
        ("7/1", Fraction, "7/1"),
        ("3.00e05", Scientific, "3.0e5"),
        ("0.0e0", Scientific, "0.0e0"),
        ("1.5e8", Scientific, "1.5e8"),
    ],
)
def test_parsing_gives_the_canonical_text(text, representation, canonical):
    assert str(representation.parse(text)) == canonical


@pytest.mark.parametrize(
    ("text", "representation"),
    [
        ("", Integer),
        ("-3", Integer),
        ("+3", Integer),
        ("1_000", Integer),
        ("٣", Integer),  # an Arabic-Indic digit
        ("1.5", Integer),
        ("5", Float),
        ("5.", Float),
        (".5", Float),
        ("1.2.3", Float),
        ("1/0", Fraction),
        ("1/2/3", Fraction),
        ("15.0e3", Scientific),
        ("0.5e3", Scientific),
        ("1.5e-8", Scientific),
        ("1.5e+8", Scientific),
        ("1.5E8", Scientific),
        ("1e5", Scientific),
        ("3\n", Integer),
    ],
)
def test_a_text_outside_of_the_grammar_is_refused(text, representation):
    with pytest.raises(ValueError, match="is not"):
        representation.parse(text)


@given(naturals, naturals.filter(bool), st.integers(0, 30))
def test_every_number_survives_its_text(n, m, shift):
    for number in (Integer(n), Float(n, -shift), Float(n, shift), Fraction.reduced(n, m), Scientific(n, shift)):
        again = type(number).parse(str(number))
        assert again == number
        assert hash(again) == hash(number)
        assert str(again) == str(number)


@given(st.tuples(naturals, st.integers(0, 12)), st.tuples(naturals, st.integers(0, 12)))
def test_decimal_arithmetic_and_order_agree_with_the_standard_library(x, y):
    for kind in (Float, Scientific):
        sign = -1 if kind is Float else 1
        a, b = kind(x[0], sign * x[1]), kind(y[0], sign * y[1])
        exact_a, exact_b = (fractions.Fraction(n[0]) * fractions.Fraction(10) ** (sign * n[1]) for n in (x, y))
        assert decimal_of(a + b) == exact_a + exact_b
        assert decimal_of(a * b) == exact_a * exact_b
        assert (a < b) == (exact_a < exact_b)
        assert (a == b) == (exact_a == exact_b)
        if exact_a >= exact_b:
            assert decimal_of(a - b) == exact_a - exact_b


@given(naturals, naturals.filter(bool), naturals, naturals.filter(bool))
def test_fraction_arithmetic_and_order_agree_with_the_standard_library(n, m, p, q):
    a, b = Fraction.reduced(n, m), Fraction.reduced(p, q)
    exact_a, exact_b = fractions.Fraction(n, m), fractions.Fraction(p, q)
    assert fractions.Fraction(str(a + b)) == exact_a + exact_b
    assert fractions.Fraction(str(a * b)) == exact_a * exact_b
    assert (a < b) == (exact_a < exact_b)
    if p:
        assert fractions.Fraction(str(a / b)) == exact_a / exact_b


def test_a_number_is_as_long_as_its_longest_part():
    assert length(Float.parse("1234.5")) == 4
    assert length(Float.parse("1.23456")) == 5
    assert length(Fraction.parse("7/1234")) == 4
    assert length(Scientific.parse("3.25e7")) == 2
    assert length(Scientific.parse("3.0e57")) == 1
    assert length(Integer(0)) == 1


def test_parts_are_the_digit_strings_between_the_separators():
    assert split_parts("425.92", Float) == ["425", "92"]
    assert split_parts("9.8302e18", Scientific) == ["9", "8302", "18"]
    assert all(
        len(kind.alignment) == 1 + sum(c in "./e" for c in text)
        for text, kind in (("1", Integer), ("1.2", Float), ("1/2", Fraction), ("1.2e3", Scientific))
    )


def test_numbers_of_any_length_are_exact():
    """Python refuses to read or write more than 4,300 digits unless it is told that this is wanted."""
    nines = "9" * 5000
    assert str(Integer.parse(nines) + Integer.parse("1")) == "1" + "0" * 5000
